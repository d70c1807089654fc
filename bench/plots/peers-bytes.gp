# Title: Bytes for each element of the peers
# Description: Bars for a set of a million keys of 8 bytes, from the smallest to the largest: what each way to test
# membership takes on disk, and in the memory of the session that asks.

height = 430
eval canvas(height)
top = 0.945
head = "What a set of a million keys takes"
sub = "Bytes for each key of 8 bytes. Full: on disk. Pale: memory of the session that asks, at its peak."
eval heading

# "stats" knows no names of columns: 1 is the case, 2 the peer, 3 elements, 4 the metric, 7 the median.
file = 'peers_membership.csv'
million = 1e6
is_size(i, metric) = strcol(1) eq "membership" && strcol(2) eq name[i] && column(3) == million && strcol(4) eq metric
array disk[peers]
array memory[peers]
array order[peers]
do for [i = 1:peers] {
    disk[i] = 0
    memory[i] = 0
    order[i] = i
    stats file using (is_size(i, "bytes") ? (disk[i] = column(7) / million) : NaN) nooutput
    stats file using (is_size(i, "memory") ? (memory[i] = column(7) / million) : NaN) nooutput
}
total(i) = disk[i] + memory[i]
do for [i = 1:peers - 1] {
    do for [j = 1:peers - i] {
        if (total(order[j]) > total(order[j + 1])) { swap = order[j]; order[j] = order[j + 1]; order[j + 1] = swap }
    }
}

set margins screen 0.2, screen 0.93, screen 0.13, screen 0.855
most = total(order[peers])
set xrange [0:most * 1.02]
set yrange [peers + 0.6:0.4]
set xlabel "bytes for each key" offset 0, 0.4
set border 2
set grid noytics
unset ytics
do for [i = 1:peers] {
    one = order[i]
    set object 2 * i rectangle from 0, i - 0.32 to disk[one], i + 0.32 \
        fillcolor rgb colour[kind[one]] fillstyle solid 1 noborder
    set object 2 * i + 1 rectangle from disk[one], i - 0.32 to total(one), i + 0.32 \
        fillcolor rgb colour[kind[one]] fillstyle solid 0.45 noborder
    set label 10 + i shown[one] at 0, i right offset -0.6, 0 textcolor rgb colour[kind[one]]
    set label 30 + i sprintf(total(one) < 100 ? "%.3g" : "%.0f", total(one)) at total(one), i left \
        offset 0.6, 0 textcolor rgb muted
}
plot NaN
