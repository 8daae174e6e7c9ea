#!/bin/sh
# Run every experiment behind the tables of docs/, and rebuild the documents: `make results`.
# What has a row is not run again, so that after a stop the same command goes on.
# `single`, row by row, takes most of the time: 20,000 calls a cell, so one seed on the large sets.
set -eu
cd "$(dirname "$0")/.."
before=bsodh,hmoh,hcoh,mihash,osh,adapthash,okh,frosh,sketchhash,itq,pcah,lsh
after=sdohhc,foh,lemon,athoh,ohweu,ridgehash  # the methods after SDOH

# The paper's tables and figures, and the methods after it beside them.
streamhash reproduce all --out results
streamhash bench --data mnist --method $after --settings both --bits 32,64 --seeds 3 \
    --checkpoints 1 --out results/mnist --resume
for data in mnist cifar10-features; do
    streamhash bench --data $data --method $after --bits 48,64,128 --seeds 1 --checkpoints 1 \
        --out results/lengths/$data --resume
    for codes in encoded labelled; do
        streamhash bench --data $data --method bsodh,hmoh,hcoh,osh,$after --bits 32 --seeds 1 \
            --checkpoints 1 --database $codes --out results/labelled/$data --resume
    done
done

# The methods' pages: default settings, and what a change of the published ones is worth.
change() {  # METHOD, CHANGES, BITS, SEEDS, CHECKPOINTS
    streamhash bench --data mnist --method $1 --settings published $2 --bits $3 --seeds $4 \
        --checkpoints $5 --out results/mnist --resume
}
streamhash bench --data mnist --method $before --bits 32,48,64,128 --seeds 3 --out results/mnist \
    --resume
change bsodh "--set form=released" 32,48,64,128 3 2
change hmoh "--set rows=permuted" 32,48,64,128 3 2
change mihash "--set gradient=exact" 32,48,64,128 3 2
change foh "--set form=objective --set absent_classes=kept" 32,64 3 1
change foh "--set weights=released" 32,64 3 1
change lemon "--set n_anchors=1000" 32,64 3 1
change sdohhc "--set form=released" 32,64 3 1
change sdohhc "--set ridge=0.001" 32,64 3 1
change ridgehash "--set ridge=0.001" 32,64 3 1
change ridgehash "--set n_anchors=None" 32,64 3 1
change ohweu "" 32,64 10 1  # seeds matter most in these two
change ohweu "--set clip_at_zero=True" 32,64 10 1
change athoh "" 32,64 10 1
for how in hard_mining=False deviation=root codewords=permuted; do
    change athoh "--set $how" 32,64 10 1
done

# Streams in other orders, and with a fifth of the labels wrong.
orders() {  # DATA, SETTINGS, METHODS, ORDERS, SEEDS of single rows
    cell="--data $1 --settings $2 --method $3 --checkpoints 1 --out results/orders/$1 --resume"
    streamhash bench $cell --seeds 3 --order "$4"
    streamhash bench $cell --seeds 3 --label-noise 0.2
    streamhash bench $cell --seeds "$5" --order single
}
every=shuffled,sorted,halves,runs
for data in mnist cifar10-features miniplaces-features; do
    orders $data tuned $before $every 1
    orders $data default sdoh,$after $every 1
done
for data in digits long-tail; do orders $data default all $every 3; done
orders reuters default all natural,$every 3

# Each class along a sorted stream; and SDOH with one addition off at a time.
curves="--data mnist --order sorted --seeds 1 --checkpoints 41 --curve-by-class
    --out results/orders/curves --resume"
plain="--set memory=0 --set features=None"  # as it was in version 0.1
streamhash bench $curves --method all
streamhash bench $curves --method sdoh $plain
for data in mnist cifar10-features miniplaces-features digits long-tail reuters; do
    for change in "$plain" "--set memory=0" "--set class_scores=None" "--set class_scores=linear" \
        "--set features=None" "--set features=fourier" "--set equal_classes=False" \
        "--set ridge=0.05" "--set doubt=None"; do
        cell="--data $data --method sdoh $change --seeds 1 --checkpoints 1
            --out results/orders/ablation --resume"
        streamhash bench $cell --order shuffled,sorted
        streamhash bench $cell --label-noise 0.2
    done
done

# Other people's tests.
python benchmarks/runbooks.py
python benchmarks/runbooks.py --data mnist --kinds deleting --rows 69800 --clusters 32 \
    --only "faiss flat,faiss HNSW,SDOH 64,ITQ 256"
python benchmarks/ann_benchmarks.py

python docs/rebuild.py
