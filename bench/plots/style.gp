# What the pictures share. The colours are variables that script/dev/pictures sets from the palette.

width = 760
set datafile separator comma
set datafile columnheaders
set datafile missing NaN
set encoding utf8

canvas(height) = sprintf("set terminal svg size %d,%d fixed enhanced font 'sans-serif,13' background '%s'", \
    width, height, page)

# The title at the top left, and a line below it.
heading = "set label 1 sprintf('{/:Bold=16 %s}', head) at screen 0.012, screen top left textcolor rgb ink; \
    set label 2 sub at screen 0.012, screen (top - 22.0 / height) left textcolor rgb muted"

set border 3 linecolor rgb muted linewidth 1
set tics nomirror scale 0.5 textcolor rgb muted
set grid linetype 1 linecolor rgb grid linewidth 1
set xlabel textcolor rgb muted
set ylabel textcolor rgb muted
set title textcolor rgb ink
unset key

set style line 1 linecolor rgb blue linewidth 1.8 pointtype 7 pointsize 0.35
set style line 2 linecolor rgb red linewidth 1.8 pointtype 7 pointsize 0.35
set style line 3 linecolor rgb green linewidth 1.8 pointtype 7 pointsize 0.35
set style line 4 linecolor rgb purple linewidth 1.8 pointtype 7 pointsize 0.35
set style line 5 linecolor rgb gold linewidth 1.8 pointtype 7 pointsize 0.35
set style line 9 linecolor rgb ink linewidth 1.2 dashtype (6, 4)

# x in the rows of one layout and rate.
of_rate(layout, rate, x) = strcol("layout") eq layout && abs(column("rate_asked") / rate - 1) < 1e-6 ? x : NaN

# The peers in membership tests, as the measurements name them. A colour says what kind they are.
peers = 11
array name[peers] = ["bloomfilter stored", "bloomfilter stored; 1e-6", "bloomfilter built by the query", \
    "= ANY (array)", "hashed IN", "semi-join", "btree index", "hash index", "contrib/bloom", "BRIN bloom", \
    "PL/Python set"]
array shown[peers] = ["bloomfilter", "bloomfilter, 10^{-6}", "bloomfilter in query", \
    "= ANY (array)", "hashed IN", "semi-join", "B-tree", "hash index", "contrib/bloom", "BRIN bloom", "PL/Python set"]
array kind[peers] = [1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5]
array dashes[peers] = [1, 2, 3, 1, 2, 3, 1, 2, 1, 2, 1]
array colour[5] = [blue, red, green, purple, gold]
