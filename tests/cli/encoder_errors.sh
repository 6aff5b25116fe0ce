#!/usr/bin/env bash
# finetti pretrain, finetune and probe: options that would change nothing, files that would be written
# over, data that do not fit.
. "$(dirname "$0")/common.bash"
export OMP_WAIT_POLICY=passive
tiny=(--width 8 --heads 2 --layers 1 --batch 8 --steps 4)
"$PYTHON" - <<'PY'
import random
random.seed(5)
def images(name, n, scale=1, digits=3):
    with open(name, "w") as f:
        f.write(",".join("p%d" % j for j in range(16)) + ",digit\n")
        for i in range(n):
            f.write(",".join("%g" % (scale * (4 * (j % 4 == i % 3) + random.gauss(0, 1))) for j in range(16)) + ",%d\n" % (i % digits))
images("images.csv", 60)
images("others.csv", 60)
images("huge.csv", 60, 1e300)
images("one.csv", 60, 1, 1)
PY
cp images.csv kept.csv
images=(--data images.csv --label digit --patch 2)

# ---- options that would change nothing
nothing="would change nothing"
refuses 2 "$nothing" pretrain --label-noise 0.5
refuses 2 "--keep" pretrain "${images[@]}" --keep 0.5
refuses 2 "$nothing" pretrain --objective supervised --M 5
refuses 2 "$nothing" pretrain --task slr --objective supervised --L-least 3
refuses 2 "--label-noise $nothing" pretrain "${images[@]}" --label-noise 1 --objective supervised
refuses 2 "$nothing" pretrain "${images[@]}" --L 5
refuses 2 "$nothing" pretrain "${images[@]}" --objective supervised --share 0.3
refuses 2 "$nothing" pretrain --longest 5
refuses 2 "$nothing" pretrain --hidden 0 --activation relu
refuses 2 "--final-rate $nothing" pretrain --optimizer lbfgs --samples 16 --final-rate 0.1
refuses 2 "--rows" pretrain --data images.csv --label digit --rows 4
refuses 2 "--bag" pretrain "${images[@]}" --bag p1
refuses 2 "--test-folds 1" pretrain "${images[@]}" --test-folds 1
refuses 2 "--test-fold" pretrain "${images[@]}" --test-folds 0 --test-fold 3
refuses 2 "--test-folds goes with --data" pretrain --test-folds 3

# ---- files that would be written over, and standard output
for name in out checkpoint log; do
    refuses 2 "standard output" pretrain "${tiny[@]}" --$name -
done
refuses 2 "the same file" pretrain "${tiny[@]}" --out a.fin --checkpoint a.fin
refuses 2 "the same file" pretrain "${tiny[@]}" --out a.fin --log ./a.fin --checkpoint a.fin
refuses 2 "over the data" pretrain "${images[@]}" "${tiny[@]}" --log ./images.csv
accepts pretrain "${images[@]}" "${tiny[@]}" --out enc.fin --stop-at 2 --checkpoint part.fin
cp enc.fin kept.fin
refuses 2 "over the data" finetune enc.fin --data images.csv --log images.csv
refuses 2 "over the encoder" finetune enc.fin --data images.csv --out ./enc.fin
refuses 2 "over the checkpoint" pretrain --resume part.fin --out part.fin
refuses 2 "over the data" probe enc.fin --data images.csv --reconstruct images.csv
refuses 2 "standard output" probe enc.fin --maps -
refuses 2 "end it in .csv" probe enc.fin --maps map.npz
refuses 1 "no/s.npz" probe enc.fin --states no/s.npz
cmp images.csv kept.csv
cmp enc.fin kept.fin

# ---- learning goes on with the same data only, under any name
refuses 2 "other sequences" pretrain --resume part.fin --data others.csv
mv images.csv moved.csv
accepts pretrain --resume part.fin --data moved.csv --out end.fin
mv moved.csv images.csv
refuses 2 "--evaluate-on cannot be changed" pretrain --resume part.fin --evaluate-on 3

# ---- numbers that cannot be scaled, labels that are too few
refuses 1 "are the units right" pretrain --data huge.csv --label digit --patch 2
refuses 1 "(--columns)" pretrain --data images.csv --patch 2 --columns 'p0:p6'
refuses 2 "none of class" finetune enc.fin --data images.csv --label digit --per-class 1 --patience 2
refuses 2 "at least 2" finetune enc.fin --data one.csv --label digit

# ---- more tokens than a batch can hold
refuses 2 "2^28" pretrain --L 1048576 --M 1 --batch 1048576 --steps 1

# ---- probes
refuses 2 "neither all nor joint" probe enc.fin --layer 5
refuses 2 "neither all nor joint" probe enc.fin --layer some
refuses 2 "0 to 11" probe enc.fin --maps map.csv --sequence 12
accepts probe enc.fin --maps map.csv --sequence 11
accepts pretrain "${tiny[@]}" --L 1 --M 2 --noise 0 --evaluate-on 16 --lengths 8 --out concept.fin
prints "1 token in sight"
! grep -q 'e+\|00000 %' stdout || fail "$(cat stdout)"
refuses 2 "--per-class goes with --data" probe concept.fin --per-class 3
refuses 2 "--label goes with --data" probe concept.fin --label digit

# ---- a disk too full for the checkpoint: the encoder, which is smaller, is written all the same
code=0
(ulimit -f 10 && "$FINETTI" pretrain "${tiny[@]}" --evaluate-on 16 --out small.fin --checkpoint large.fin >stdout 2>stderr) || code=$?
[ "$code" = 1 ] || fail "exit code $code: $(cat stderr)"
grep -q "cannot write 'large.fin'" stderr || fail "$(cat stderr)"
[ ! -e large.fin ] || fail "half a checkpoint"
accepts info small.fin
echo "encoder_errors: ok"
