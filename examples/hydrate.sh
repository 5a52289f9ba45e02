#!/usr/bin/env bash
# Proposes what is made of the commit that is checked out, for each environment that is named:
#
#   hydrate.sh dev test prod
#
# Run it in a clone of the dry branch with its whole history, once at a time. It needs git, which may push to
# the proposed branches, and what prints the manifests of a folder:
#
#   RENDER     such as "kubectl kustomize"     [kustomize build]
#   OVERLAYS   has a folder per environment    [overlays]
#   PREFIX     what branches begin with        [env/]
#   REMOTE     where they are                  [origin]
set -euo pipefail
remote=${REMOTE:-origin} prefix=${PREFIX:-env/} overlays=${OVERLAYS:-overlays}
render=${RENDER:-kustomize build}
notes=refs/notes/hydrator.metadata
dry=$(git rev-parse HEAD)

# A text as JSON has it.
quoted() { printf '"%s"' "$(tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"; }

# What is said of a dry commit, in the file hydrator.metadata and in notes.
metadata() {
  printf '{"drySha": "%s", "author": %s, "date": "%s", "subject": %s}\n' "$1" \
    "$(git show --no-patch --format='%an <%ae>' "$1" | quoted)" \
    "$(git show --no-patch --format=%cI "$1")" "$(git show --no-patch --format=%s "$1" | quoted)"
}

# Both branches of an environment that is new, without manifests.
begin() {
  local first blob tree start
  first=$(git rev-list --max-parents=0 "$dry" | tail -n 1)
  blob=$(metadata "$first" | git hash-object -w --stdin)
  tree=$(printf '100644 blob %s\thydrator.metadata\n' "$blob" | git mktree)
  start=$(git commit-tree -m "Nothing is hydrated yet" "$tree")
  git push --quiet "$remote" "$start:refs/heads/$1" "$start:refs/heads/$1-next"
}

# In the folder $2: what is made for the environment $1, on top of what is proposed so far.
hydrate() {
  local environment=$1 next=$2 branch=$prefix$1-next commit said before
  commit=$(git -C "$next" rev-parse HEAD)
  said=$(git notes --ref="$notes" show "$commit" 2> /dev/null || cat "$next/hydrator.metadata")
  before=$(sed -n 's/.*"drySha": *"\([0-9a-f]*\)".*/\1/p' <<< "$said")
  if [ "$before" != "$dry" ] && git merge-base --is-ancestor "$dry" "$before"; then
    echo "$branch: what was made of a later commit is proposed already"
    return
  fi
  $render "$overlays/$environment" > "$next/manifests.yaml"
  git -C "$next" add manifests.yaml
  if ! git -C "$next" diff --cached --quiet; then
    metadata "$dry" > "$next/hydrator.metadata"
    git -C "$next" add hydrator.metadata
    git -C "$next" commit --quiet --message "Hydrate $dry for $environment"
    commit=$(git -C "$next" rev-parse HEAD)
    git push --quiet "$remote" "$commit:refs/heads/$branch"
    echo "$branch: proposed"
  elif [ "$before" != "$dry" ]; then
    # Nothing has changed: a note says that the commit stands for this dry commit, too.
    metadata "$dry" | git notes --ref="$notes" add --force --file=- "$commit" 2> /dev/null
    git push --quiet "$remote" "$notes"
    echo "$branch: noted"
  fi
}

git fetch --quiet "$remote" "+$notes:$notes" 2> /dev/null || echo "no commit has a note yet"
for environment in "$@"; do
  branch=$prefix$environment
  git ls-remote --exit-code "$remote" "refs/heads/$branch-next" > /dev/null || begin "$branch"
  git fetch --quiet "$remote" "+refs/heads/*:refs/remotes/$remote/*"
  next=$(mktemp -d)
  git worktree add --quiet --detach "$next" "refs/remotes/$remote/$branch-next"
  hydrate "$environment" "$next"
  git worktree remove --force "$next"
done
