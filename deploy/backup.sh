#!/bin/sh
# Back up every collection of a folder, each into a folder of its name:
#   backup.sh /var/lib/streamhash /var/backups/streamhash
# KEEP backups of each are kept (30). One that fails does not keep the others from theirs; the exit
# code tells. TARGET may be an object store (s3://bucket/backups).
set -u
if [ $# -ne 2 ]; then
    echo "usage: $0 FOLDER TARGET" >&2
    exit 2
fi
folder=${1%/} target=${2%/} n=0 failed=0
for collection in "$folder"/*/; do
    collection=${collection%/}
    [ -d "$collection/items.lance" ] || [ -d "$collection/learner.lance" ] || continue
    n=$((n + 1))
    if ! streamhash live backup "$collection" "$target/${collection##*/}" --keep "${KEEP:-30}"; then
        echo "$collection was not backed up" >&2
        failed=$((failed + 1))
    fi
done
if [ "$n" -eq 0 ]; then
    echo "there is no collection in $folder" >&2
    exit 1
fi
[ "$failed" -eq 0 ]
