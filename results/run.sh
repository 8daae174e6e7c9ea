#!/bin/sh
# Run every experiment whose rows are kept here, and rebuild the documents: `make results`.
# What has a row is not run again, so that after a stop the same command goes on.
# `single`, row by row, takes most of the time that is left: 20,000 calls a cell.
set -eu
cd "$(dirname "$0")/.."
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

# Streams in other orders, and with a fifth of the labels wrong.
orders() {  # DATA, SETTINGS, METHODS, ORDERS
    cell="--data $1 --settings $2 --method $3 --seeds 3 --checkpoints 1 --out results/orders/$1 --resume"
    streamhash bench $cell --order "$4"
    streamhash bench $cell --label-noise 0.2
}
every=shuffled,sorted,halves,runs,single
for data in mnist cifar10-features miniplaces-features; do
    orders $data tuned all $every
    orders $data default sdoh,$after $every
done
for data in digits long-tail; do orders $data default all $every; done
orders reuters default all natural,shuffled,sorted,single

# Each class along a sorted stream.
streamhash bench --data mnist --order sorted --seeds 3 --checkpoints 41 --curve-by-class \
    --method sdoh,hmoh,bsodh --out results/orders/curves --resume

# Other people's tests.
python benchmarks/runbooks.py
python benchmarks/ann_benchmarks.py

python docs/rebuild.py
