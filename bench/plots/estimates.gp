# Title: Errors of cardinality, intersection and similarity
# Description: Three panels. The estimated number of elements is exact up to 15 % of the capacity, where filters are
# sparse. A full filter of 1,000 elements errs by 0.8 %, one of 100,000 elements by 0.08 %. For these two the error of
# an intersection is at most 1.4 % and 0.14 % of one set, and that of the similarity at most 0.7 and 0.07 % points.

height = 400
eval canvas(height)
top = 0.945
head = "The larger the filter, the better its estimates"
sub = "Standard deviation of estimates at a rate of 1 %, blocked. Dots: measured over 100 or more seeds. Lines: theory."
eval heading

capacity(i) = 10**(2 + i)
of_estimate(estimate, n, x) = strcol("layout") eq "blocked" && strcol("estimate") eq estimate \
    && column("capacity_elements") == n ? x : NaN
error_of(estimate, n, name, unit) = of_estimate(estimate, n, column(name) / unit)

set multiplot layout 1, 3 margins 0.055, 0.985, 0.13, 0.785 spacing 0.06, 0.1
set title "cardinality, % of it" offset 0, -0.6
set xlabel "elements / capacity" offset 0, 0.4
set logscale x
set xrange [0.01:4]
set xtics ("0.01" 0.01, "0.1" 0.1, "1" 1, "4" 4)
set yrange [0:1.6]
set ytics 0.5
set label 3 "1,000 elements" at 0.012, 1.1 left textcolor rgb blue
set label 4 "10,000" at 0.012, 1.0 left textcolor rgb red
set label 5 "100,000" at 0.012, 0.9 left textcolor rgb green
set label 6 "sparse: exact" at 0.012, 0.1 left textcolor rgb ink
plot for [i = 1:3] 'estimates.csv' using (column("load_of_capacity")): \
        (error_of("cardinality", capacity(i), "expected_standard_deviation", column("truth") / 100)) \
        with lines linestyle i, \
    for [i = 1:3] '' using (column("load_of_capacity")): \
        (error_of("cardinality", capacity(i), "standard_deviation", column("truth") / 100)) with points linestyle i

do for [i = 1:6] { unset label i }
unset logscale x
set xrange [0:1]
set xtics 0.25
set xlabel "share of the elements in both" offset 0, 0.4
set title "intersection, % of one set"
plot for [i = 1:3] 'estimates.csv' using (column("overlap_of_set")): \
        (error_of("intersection", capacity(i), "expected_standard_deviation", capacity(i) / 100)) \
        with lines linestyle i, \
    for [i = 1:3] '' using (column("overlap_of_set")): \
        (error_of("intersection", capacity(i), "standard_deviation", capacity(i) / 100)) with points linestyle i

set title "Jaccard similarity, % points"
plot for [i = 1:3] 'estimates.csv' using (column("overlap_of_set")): \
        (error_of("jaccard", capacity(i), "expected_standard_deviation", 0.01)) with lines linestyle i, \
    for [i = 1:3] '' using (column("overlap_of_set")): \
        (error_of("jaccard", capacity(i), "standard_deviation", 0.01)) with points linestyle i
unset multiplot
