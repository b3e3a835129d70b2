// The form of a frame's content, as chainkit_client/mls/frames.py writes and reads it: fields, one
// after the other, each with its length before it, in four bytes, the highest first.

export class BadFrame extends Error {}

export function encodeFields(fields) {
  const content = Buffer.allocUnsafe(fields.reduce((sum, field) => sum + 4 + field.length, 0));
  let at = 0;
  for (const field of fields) {
    content.writeUInt32BE(field.length, at);
    content.set(field, at + 4);
    at += 4 + field.length;
  }
  return content;
}

export function decodeFields(content) {
  const fields = [];
  let at = 0;
  while (at < content.length) {
    if (at + 4 > content.length) throw new BadFrame("expected a length");
    const length = content.readUInt32BE(at);
    if (at + 4 + length > content.length) throw new BadFrame("expected a whole field");
    fields.push(content.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return fields;
}

export function number(value) {
  const field = Buffer.allocUnsafe(8);
  field.writeBigUInt64BE(BigInt(value));
  return field;
}

export function readNumber(field) {
  if (field.length !== 8) throw new BadFrame("expected a number of eight bytes");
  return field.readBigUInt64BE();
}
