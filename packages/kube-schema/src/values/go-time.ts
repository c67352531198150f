/** Layouts of times on the wire, as Go writes them. */
export const SECONDS_LAYOUT = '2006-01-02T15:04:05Z07:00'
export const MICROS_LAYOUT = '2006-01-02T15:04:05.000000Z07:00'

interface Element {
  readonly layout: string
  readonly pattern: RegExp
  readonly range?: readonly [name: string, min: number, max: number]
}

const ELEMENTS: readonly Element[] = [
  { layout: '2006', pattern: /^\d{4}/ },
  { layout: '-', pattern: /^-/ },
  { layout: '01', pattern: /^\d\d/, range: ['month', 1, 12] },
  { layout: '-', pattern: /^-/ },
  { layout: '02', pattern: /^\d\d/, range: ['day', 1, 31] },
  { layout: 'T', pattern: /^T/ },
  { layout: '15', pattern: /^\d\d/, range: ['hour', 0, 23] },
  { layout: ':', pattern: /^:/ },
  { layout: '04', pattern: /^\d\d/, range: ['minute', 0, 59] },
  { layout: ':', pattern: /^:/ },
  { layout: '05', pattern: /^\d\d/, range: ['second', 0, 59] },
]
const ZONE: Element = { layout: 'Z07:00', pattern: /^(Z|[+-]\d\d:\d\d)/ }

/** Why a text is no time, in the words of Go's parser; undefined when it is one. */
export function timeProblem(text: string, layout: typeof SECONDS_LAYOUT | typeof MICROS_LAYOUT): string | undefined {
  const about = `parsing time ${JSON.stringify(text)}`
  // Seconds may have a fraction that the layout does not show.
  const fraction: Element = layout === MICROS_LAYOUT ? { layout: '.000000', pattern: /^\.\d{6}/ } : { layout: '', pattern: /^([.,]\d+)?/ }
  let rest = text
  for (const element of [...ELEMENTS, fraction, ZONE]) {
    const found = element.pattern.exec(rest)?.[0]
    if (found === undefined)
      return `${about} as ${JSON.stringify(layout)}: cannot parse ${JSON.stringify(rest)} as ${JSON.stringify(element.layout)}`
    const [name, min = 0, max = 0] = element.range ?? []
    if (name !== undefined && (Number(found) < min || Number(found) > max)) return `${about}: ${name} out of range`
    rest = rest.slice(found.length)
  }
  if (rest !== '') return `${about}: extra text: ${JSON.stringify(rest)}`
  return isDay(text) ? undefined : `${about}: day out of range`
}

function isDay(text: string): boolean {
  const date = new Date(`${text.slice(0, 10)}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(8, 10) === text.slice(8, 10)
}
