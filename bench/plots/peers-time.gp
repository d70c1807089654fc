# Title: Time for each key by size of the set, against the peers
# Description: Two panels, present and absent keys. On logarithmic scales the processor time for each key over sets of
# 10 thousand keys or more: Bloom filters, hash tables that a query builds, B-tree and hash indexes, the lossy
# indexes contrib/bloom and BRIN bloom, and a set in PL/Python. Vertical lines mark where the filter outgrows the
# second-level and third-level caches, and the B-tree shared_buffers.

height = 470
eval canvas(height)
top = 0.95
head = "What one key costs as the set outgrows the caches"
sub = "Processor time for each key. Marks: where the filter outgrows L2 and L3, the B-tree shared\\_buffers."
eval heading

file = 'peers_membership.csv'
least = 1.0
greatest = 1e9
set xtics ("10^{4}" 1e4, "10^{5}" 1e5, "10^{6}" 1e6, "10^{7}" 1e7, "10^{8}" 1e8)
set ytics ("1 ns" 1, "" 10, "100 ns" 100, "" 1e3, "10 µs" 1e4, "" 1e5, "1 ms" 1e6, "" 1e7, "100 ms" 1e8, "" 1e9)
set xlabel "keys in the set" offset 0, 0.4

of_peer(keys, i, x) = strcol("case") eq "membership; ".keys." keys" && strcol("peer") eq name[i] \
    && strcol("metric") eq "seconds per key" ? x : NaN
curves(keys) = sprintf("plot for [i = 1:peers] file using (of_peer('%s', i, column('elements'))):'median' \
    with lines linewidth 1.8 linecolor rgb colour[kind[i]] dashtype dashes[i]", \
    keys)

# The labels stand at the right ends of the lines, moved apart where they would overlap. "stats" knows no names of
# columns: 1 is the case, 2 the peer, 3 elements, 4 the metric, 7 the median.
is_time(i) = strcol(1) eq "membership; absent keys" && strcol(2) eq name[i] && strcol(4) eq "seconds per key"
array last[peers]
array place[peers]
array order[peers]
do for [i = 1:peers] {
    last[i] = NaN
    order[i] = i
    stats file using (is_time(i) ? (last[i] = column(7)) : NaN) nooutput
}
height_of(i) = last[i] == last[i] ? log10(last[i]) : -1
do for [i = 1:peers - 1] {
    do for [j = 1:peers - i] {
        if (height_of(order[j]) > height_of(order[j + 1])) {
            swap = order[j]; order[j] = order[j + 1]; order[j + 1] = swap
        }
    }
}
step = 16.0 / (height * 0.66) * log10(greatest / least)
# The mean of two ways: each pushed up by the one below, and each pushed down by the one above.
lowest = -1
do for [i = 1:peers] {
    place[order[i]] = height_of(order[i]) < lowest + step ? lowest + step : height_of(order[i])
    if (last[order[i]] == last[order[i]]) { lowest = place[order[i]] }
}
highest = log10(greatest) + step
do for [i = peers:1:-1] {
    highest = height_of(order[i]) > highest - step ? highest - step : height_of(order[i])
    place[order[i]] = (place[order[i]] + highest) / 2
}

# Where the filter outgrows the caches, and the B-tree shared_buffers: bytes by the sizes of the largest set.
is_size(peer) = strcol(1) eq "membership" && strcol(2) eq peer && strcol(4) eq "bytes"
stats file using (is_size("bloomfilter stored") ? (of_filter = column(7) / column(3)) : NaN) nooutput
stats file using (is_size("btree index") ? (of_btree = column(7) / column(3)) : NaN) nooutput
stats 'machine.csv' using (strcol(1) eq "L2 cache" ? (of_l2 = column(2)) : NaN) nooutput
stats 'machine.csv' using (strcol(1) eq "L3 cache" ? (of_l3 = column(2)) : NaN) nooutput
stats 'machine.csv' using (strcol(1) eq "shared_buffers" ? (buffers = column(2)) : NaN) nooutput
stats file using 3 nooutput
largest = STATS_max
array mark[3] = [of_l2 / of_filter, of_l3 / of_filter, buffers / of_btree]
array marked[3] = ["L2", "L3", "buffers"]
array mark_colour[3] = [blue, blue, green]
do for [i = 1:3] {
    if (mark[i] < largest) {
        set arrow i from mark[i], graph 0 to mark[i], graph 1 nohead back linestyle 9 linecolor rgb mark_colour[i]
        set label 2 + i marked[i] at mark[i], graph 1.04 right textcolor rgb mark_colour[i]
    }
}
if (mark[2] < largest) { set label 4 left }

set logscale xy
set xrange [0.99e4:largest * 1.01]
set yrange [least:greatest]
set multiplot layout 1, 2 margins 0.088, 0.775, 0.115, 0.81 spacing 0.05, 0.1
set label 6 "present keys" at graph 0, 1.04 left textcolor rgb ink
eval curves("present")
do for [i = 1:2] { unset label i }
set label 6 "absent keys"
set format y ""
set ytics ("" 1, "" 10, "" 100, "" 1e3, "" 1e4, "" 1e5, "" 1e6, "" 1e7, "" 1e8, "" 1e9)
do for [i = 1:peers] {
    if (last[i] == last[i]) {
        set style line 20 + i linewidth 1.8 linecolor rgb colour[kind[i]] dashtype dashes[i]
        set arrow 10 + i from graph 1.04, first 10**place[i] to graph 1.14, first 10**place[i] nohead linestyle 20 + i
        set label 10 + i shown[i] at graph 1.17, first 10**place[i] left textcolor rgb colour[kind[i]]
    }
}
eval curves("absent")
unset multiplot
