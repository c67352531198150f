const SURROGATES = 0xd800
const ABOVE_SURROGATES = 0xe000

/** By code point, which is also the order of the UTF-8 bytes; `<` on strings differs beyond the basic plane. */
export function compareCodePoints(a: string, b: string): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Surrogates stand for code points above everything else that fits one unit. */
function rank(unit: number): number {
  if (unit < SURROGATES) return unit
  return unit >= ABOVE_SURROGATES ? unit - 0x800 : unit + 0x2000
}
