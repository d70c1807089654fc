# Title: The false-positive rate while a filter is filled to four times its capacity
# Description: Two panels, blocked and classic. On a logarithmic scale the measured rates lie on the curves of theory,
# and reach the rate asked for at the capacity. At four times the capacity they are between 39 and 68 %. The estimates
# of bloom_fpp lie on the same curves.

height = 400
eval canvas(height)
top = 0.945
head = "What an overfilled filter costs: its rate rises as theory says"
sub = "False-positive rate by number of elements over capacity. Lines: theory. Dots: measured. Crosses: bloom\\_fpp."
eval heading

set logscale y
set yrange [1e-6:1]
set ytics ("10^{-6}" 1e-6, "10^{-5}" 1e-5, "10^{-4}" 1e-4, "0.001" 1e-3, "0.01" 1e-2, "0.1" 0.1, "1" 1)
set xrange [0:4]
set xtics 1
set xlabel "elements / capacity" offset 0, 0.4

# Theory in every row; one dot in four, without those of fewer than ten false positives; a cross between two dots.
curves(layout) = sprintf("plot for [i = 1:2] 'overfilled.csv' \
    using (of_rate('%s', 10**(-1 - i), column('load_of_capacity'))):'expected_rate' with lines linestyle i, \
    for [i = 1:2] '' every 4::1 using (of_rate('%s', 10**(-1 - i), column('load_of_capacity'))): \
        (column('rate') * column('probes') < 10 ? NaN : column('rate')) with points linestyle i pointsize 0.6, \
    for [i = 1:2] '' every 4::3 using (of_rate('%s', 10**(-1 - i), column('load_of_capacity'))):'bloom_fpp' \
        with points linestyle i pointtype 2 pointsize 0.7 linewidth 1.2", layout, layout, layout)

set multiplot layout 1, 2 margins 0.07, 0.985, 0.13, 0.785 spacing 0.04, 0.1
set label 3 "0.01 asked for" at 1.1, 0.35 left textcolor rgb blue
set label 4 "0.001 asked for" at 2.05, 0.012 left textcolor rgb red
set arrow 1 from 1, graph 0 to 1, graph 1 nohead back linestyle 9
set label 5 "full" at 1.04, 2e-6 left textcolor rgb ink
set title "blocked" offset 0, -0.6
eval curves("blocked")
do for [i = 1:5] { unset label i }
set format y ""
set ytics ("" 1e-6, "" 1e-5, "" 1e-4, "" 1e-3, "" 1e-2, "" 0.1, "" 1)
set title "classic"
eval curves("classic")
unset multiplot
