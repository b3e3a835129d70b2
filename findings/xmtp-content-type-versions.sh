#!/usr/bin/env bash
# Guess: `sameAs` of an XMTP content type compares the version, too; or at least the major one.
# Seen: `ContentTypeId.sameAs` of @xmtp/content-type-primitives 2.0.3 compares authority and type alone; `toString` has the
#   version.
# Why it matters: a codec that asks `sameAs` reads content of a later major version as its own. Compare `versionMajor`
#   before you decode.
. "$(dirname "$0")/lib.sh"
npm_packages @xmtp/content-type-primitives@2.0.3

cat >same.mjs <<'E'
import { ContentTypeId } from "@xmtp/content-type-primitives";

const vote = (versionMajor) => new ContentTypeId({ authorityId: "finding", typeId: "vote", versionMajor, versionMinor: 0 });
console.log(vote(1).toString(), vote(2).toString(), "same:", vote(1).sameAs(vote(2)));
E
expect node same.mjs <<'E'
finding/vote:1.0 finding/vote:2.0 same: true
E
