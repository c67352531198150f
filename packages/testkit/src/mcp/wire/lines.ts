const LF = 0x0a
const CR = 0x0d

/**
 * The lines of a byte stream, the last also when nothing ends it. Only LF ends a line, and a CR before it goes too: node:readline would
 * also split at U+2028 and U+2029, which JSON texts may hold as they are.
 */
export async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  let begun: Uint8Array[] = []
  for await (const chunk of input) {
    let start = 0
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      yield lineOf([...begun, chunk.subarray(start, end)])
      begun = []
      start = end + 1
    }
    if (start < chunk.length) begun.push(chunk.subarray(start))
  }
  if (begun.length > 0) yield lineOf(begun)
}

function lineOf(pieces: readonly Uint8Array[]): string {
  const bytes = Buffer.concat(pieces)
  return bytes.toString('utf8', 0, bytes.at(-1) === CR ? bytes.length - 1 : bytes.length)
}
