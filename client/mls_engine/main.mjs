// The child process: one frame in, one frame out, until the standard input ends. A frame is its length
// in four bytes, then fields: the call's number, the moment in seconds since 1970, how many past epochs
// are kept, the call's name, its arguments. An answer: the same number, a word, what it returns.
import { CALLS } from "./groups.mjs";
import { decodeFields, encodeFields, number, readNumber } from "./fields.mjs";
import { refusal } from "./refusals.mjs";

// As MOST_FRAME_BYTES of chainkit_client/mls/frames.py.
const MOST_FRAME_BYTES = 64 << 20;

async function answer(content) {
  const [id, now, pastEpochs, name, ...fields] = decodeFields(content);
  // A call depends on its arguments alone: ts-mls reads the clock where it checks a lifetime.
  const milliseconds = Number(readNumber(now)) * 1000;
  Date.now = () => milliseconds;
  const call = CALLS[name.toString("latin1")];
  try {
    const returned = await call({ pastEpochs: readNumber(pastEpochs) }, ...fields);
    return [id, Buffer.from("done"), ...returned];
  } catch (error) {
    const why = refusal(error);
    if (why === undefined) return [id, Buffer.from("failed"), Buffer.from("out of memory")];
    return [id, Buffer.from(why.word), Buffer.from(why.message)];
  }
}

function write(fields) {
  const content = encodeFields(fields);
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32BE(content.length);
  process.stdout.write(length);
  process.stdout.write(content);
}

let chunks = [];
let waiting = 0;

// Frames are joined once they are whole: joining at each chunk would copy a large one again and again.
function take(count) {
  const joined = Buffer.concat(chunks, waiting);
  const rest = joined.subarray(count);
  chunks = rest.length > 0 ? [rest] : [];
  waiting = rest.length;
  return joined.subarray(0, count);
}

let expected;
write([Buffer.from("ready"), number(process.versions.node.split(".")[0])]);
for await (const chunk of process.stdin) {
  chunks.push(chunk);
  waiting += chunk.length;
  for (;;) {
    if (expected === undefined && waiting >= 4) expected = take(4).readUInt32BE();
    if (expected > MOST_FRAME_BYTES) process.exit(2);
    if (expected === undefined || waiting < expected) break;
    const content = take(expected);
    expected = undefined;
    write(await answer(content));
  }
}
