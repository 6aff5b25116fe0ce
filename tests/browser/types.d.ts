// What the scripts of the page find in the window: for tests/all/page_types.sh.
declare const uPlot: any;
