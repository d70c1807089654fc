# Title: The measured false-positive rate over the rate that was asked for
# Description: Six panels, one for each rate from 0.1 to one in a million. For 1 to 10 million elements, and in both
# layouts, the measured rate over the rate asked for is 1 or less, within the error of the measurement. From 2,000
# elements on, theory expects between 0.89 and 1. Filters of a few elements have fewer false positives, because they
# have more bits than they need.

height = 500
eval canvas(height)
top = 0.955
head = "A filter keeps the false-positive rate that was asked for"
sub = "Measured rate / rate asked for, by number of elements. Bars: two standard errors."
eval heading

set logscale x
set xrange [0.7:2e7]
set yrange [0:1.25]
set xtics ("1" 1, "10^{3}" 1e3, "10^{5}" 1e5, "10^{7}" 1e7, "" 10 1, "" 100 1, "" 1e4 1, "" 1e6 1)
set ytics 0.25
set bars 0
set arrow 1 from 0.7, 1 to 2e7, 1 nohead front linestyle 9

panel(rate) = sprintf("plot 'rate.csv' \
    using (of_rate('blocked', %g, column('elements'))):'rate_over_asked':(2 * column('standard_error_over_asked')) \
        with yerrorlines linestyle 1 pointtype -1, \
    '' using (of_rate('classic', %g, column('elements'))):'rate_over_asked':(2 * column('standard_error_over_asked')) \
        with yerrorlines linestyle 2 pointtype -1", rate, rate)

set multiplot layout 2, 3 margins 0.055, 0.985, 0.105, 0.83 spacing 0.04, 0.115
set label 3 "as asked" at 30, 1.08 left textcolor rgb ink
set label 4 "blocked" at 150, 0.5 left textcolor rgb blue
set label 5 "classic" at 1.3, 0.83 left textcolor rgb red
set title "rate 0.1" offset 0, -0.6
eval panel(0.1)
do for [i = 1:5] { unset label i }
set format y ""
set title "rate 0.01"
eval panel(0.01)
set title "rate 0.001"
eval panel(0.001)
set format y "%g"
set xlabel "elements" offset 0, 0.5
set title "rate 10^{-4}"
eval panel(1e-4)
set format y ""
set title "rate 10^{-5}"
eval panel(1e-5)
set title "rate 10^{-6}"
eval panel(1e-6)
unset multiplot
