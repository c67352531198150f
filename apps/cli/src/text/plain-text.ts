/** Text of a server for a line of ours: without line ends and without anything that could steer the terminal. */
export function plainText(value: unknown): string {
  if (typeof value !== 'string') return ''
  return value.replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim()
}

export function firstSentence(text: string): string {
  const end = /[.!?](\s|$)/.exec(text)
  return end ? text.slice(0, end.index + 1) : text
}

/** At most so many characters, not cut inside one. */
export function shortened(text: string, max: number): string {
  const characters = [...text]
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join('')}…`
}
