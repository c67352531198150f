/** Far more than any manifest has, and little enough for everyone who walks the value by recursion. */
export const MAX_DEPTH = 500

/** Looks at the text, because a value that is too deep cannot be walked safely. */
export function isTooDeep(bytes: Uint8Array): boolean {
  if (bytes.length <= MAX_DEPTH) return false
  let depth = 0
  let inText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inText) {
      if (byte === 0x5c) at++
      else if (byte === 0x22) inText = false
    } else if (byte === 0x22) inText = true
    else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > MAX_DEPTH) return true
    } else if (byte === 0x7d || byte === 0x5d) depth--
  }
  return false
}
