"""Small data for the tests of encoders: images.csv (bars in one of three places) and bags.csv."""
import random

random.seed(3)
with open("images.csv", "w") as f:
    f.write(",".join("p%d" % j for j in range(16)) + ",digit\n")
    for i in range(90):
        bar = [16 * (j % 4 == i % 3) + random.randrange(4) for j in range(16)]
        f.write(",".join(map(str, bar)) + ",%d\n" % (i % 3))
with open("bags.csv", "w") as f:
    f.write("bag,k,v,w,label\n")
    for i in range(60):
        for t in range(1 + i % 4):
            f.write("b%d,%g,%g,%g,%s\n" % (i, random.gauss(0, 1), random.gauss(2 * (i % 2), 1), random.random(),
                                          "no" if i % 2 else "yes"))
