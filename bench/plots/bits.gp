# Title: Bits for each element by false-positive rate
# Description: Lines over rates from 0.5 to one in a billion. The information bound is the lowest, then xor and cuckoo
# filters, then the classic Bloom filter, which lies on its formula, then the blocked one. They differ little down to a
# rate of 1 %. At one in a million the bound is 20 bits, the classic filter takes 29 and the blocked one 39.

height = 440
eval canvas(height)
top = 0.95
head = "A filter takes ten bits for each element at a rate of 1 %"
sub = "Bits for each element by false-positive rate. Lines: 1 million elements. Crosses: 100. Thin lines: theory."
eval heading

set logscale x
set xrange [0.6:1e-9] reverse
set yrange [0:84]
set xtics ("0.1" 0.1, "0.01" 0.01, "0.001" 1e-3, "10^{-4}" 1e-4, "10^{-5}" 1e-5, "10^{-6}" 1e-6, "10^{-7}" 1e-7, \
    "10^{-8}" 1e-8, "10^{-9}" 1e-9)
set ytics 10
set xlabel "false-positive rate" offset 0, 0.4
set margins screen 0.055, screen 0.815, screen 0.12, screen 0.85

of_size(layout, n) = strcol("layout") eq layout && column("elements") == n ? column("rate_asked") : NaN
set label 3 "blocked" at 7e-10, 80 left textcolor rgb blue
set label 4 "classic" at 7e-10, 45 left textcolor rgb red
set label 5 "xor filter" at 7e-10, 37.8 left textcolor rgb purple
set label 6 "cuckoo filter" at 7e-10, 34 left textcolor rgb gold
set label 7 "information bound" at 7e-10, 29 left textcolor rgb ink

plot 'bits.csv' using (of_size('blocked', 1e6)):'bound_bits_per_element' with lines linestyle 9, \
    '' using (of_size('blocked', 1e6)):'xor_bits_per_element' with lines linestyle 4 linewidth 1.2, \
    '' using (of_size('blocked', 1e6)):'cuckoo_bits_per_element' with lines linestyle 5 linewidth 1.2, \
    '' using (of_size('classic', 1e6)):'bits_per_element' with lines linestyle 2, \
    '' using (of_size('blocked', 1e6)):'bits_per_element' with lines linestyle 1, \
    '' using (of_size('classic', 100)):'bits_per_element' \
        with points linestyle 2 pointtype 2 pointsize 0.5, \
    '' using (of_size('blocked', 100)):'bits_per_element' \
        with points linestyle 1 pointtype 2 pointsize 0.5
