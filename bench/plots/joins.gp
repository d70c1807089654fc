# Title: What join filters change
# Description: One dot for each query, the processor time without join filters divided by that with them, with its
# interval. Queries of shapes that gain, queries like those of TPC-H, and queries for which a filter should do nothing.

height = 640
eval canvas(height)
top = 0.965
head = "What join filters change"
sub = "Processor time without the setting, divided by that with it: median and interval of 95 %. Serial, work\\_mem 4 MB."
eval heading

# "stats" knows no names of columns: 1 is the case, 2 the metric, 3 the median, 4 and 5 its interval.
file = 'joins.csv'
# An empty name is a gap between groups.
rows = 26
array names[rows] = ["below GROUP BY", "three large dimensions", "star of 20 %", "spilling", "semi-join", \
    "semi-join; three tenths", "before a sort", "", \
    "star", "spill", "Q3", "Q5", "Q8", "Q10", "Q17", "Q18", "", \
    "all rows expected to pass; a twentieth does", "half-selective", "nine tenths pass", "unselective", \
    "skewed keys; nearly all rows pass", "no row expected to pass; all do", "outer side empty; inner of all rows", \
    "the same; below a group", "outer side of one row; inner of all rows"]
array median[rows]
array low[rows]
array high[rows]
shown(name) = strstrt(name, ";") == 0 ? name : name[1:strstrt(name, ";") - 1].",".name[strstrt(name, ";") + 1:*]
is_query(name) = strcol(1) eq name."; 4 MB" && strcol(2) eq "CPU"

shade = blue
do for [i = 1:rows] {
    if (names[i] eq "") {
        shade = shade eq blue ? green : red
    } else {
        stats file using (is_query(names[i]) ? (low[i] = column(4), high[i] = column(5), median[i] = column(3)) : NaN) nooutput
        set label 10 + i shown(names[i]) at graph 0, first i right offset -0.8, 0 textcolor rgb shade
        set arrow 10 + i from low[i], i to high[i], i nohead linecolor rgb shade linewidth 2.5
        set label 60 + i "" at median[i], i point pointtype 7 pointsize 0.5 linecolor rgb shade
        set label 110 + i sprintf("%.2f", median[i]) at high[i], i left offset 0.7, 0 textcolor rgb muted
    }
}

set margins screen 0.40, screen 0.97, screen 0.085, screen 0.905
set xrange [0.7:10]
set logscale x
set xtics ("0.8" 0.8, "1" 1, "1.5" 1.5, "2" 2, "3" 3, "5" 5, "8" 8)
set yrange [rows + 0.6:0.4]
set xlabel "times as fast with join filters" offset 0, 0.4
set border 1
set grid noytics
unset ytics
set arrow 1 from 1, 0.4 to 1, rows + 0.6 nohead linecolor rgb muted linewidth 1.2
plot NaN
