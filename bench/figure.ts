/** One measured figure, with a baseline from the same run: these machines are shared and noisy, so only comparisons mean something. */
export interface Figure {
  name: string
  unit: string
  value: number
  baseline: number
  /**
   * `ratio`: value / baseline must not be above the limit. `difference`: value - baseline must not be above the limit. Absent: the
   * figure is for information.
   */
  aim?: Aim
}

export interface Aim {
  of: 'ratio' | 'difference'
  limit: number
}

export type Verdict = 'met' | 'near' | 'missed' | 'failed' | 'no aim'

/** Within the aim: met. Up to 20 % off: near, that is noise. Up to 2× off: missed, a finding. More: failed. */
export function judge(figure: Figure): Verdict {
  if (figure.aim === undefined) return 'no aim'
  const off = reached(figure, figure.aim) / figure.aim.limit
  if (off <= 1) return 'met'
  if (off <= 1.2) return 'near'
  return off <= 2 ? 'missed' : 'failed'
}

export function reached(figure: Figure, aim: Aim): number {
  return aim.of === 'ratio' ? figure.value / figure.baseline : figure.value - figure.baseline
}

export function renderTable(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => [
    figure.name,
    number(figure.value, figure.unit),
    number(figure.baseline, figure.unit),
    figure.baseline === 0 ? '' : `${(figure.value / figure.baseline).toFixed(2)}×`,
    aimText(figure),
    judge(figure),
  ])
  return renderColumns([['figure', 'value', 'baseline', 'ratio', 'aim', 'verdict'], ...rows])
}

/** The first columns are texts, and begin where the others end. */
export function renderColumns(table: readonly (readonly string[])[], texts = 1): string {
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  const cellOf = (cell: string, column: number) => (column < texts ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))
  return table.map((row) => row.map(cellOf).join('  ')).join('\n')
}

function aimText({ aim, unit }: Figure): string {
  if (aim === undefined) return ''
  return aim.of === 'ratio' ? `≤ ${aim.limit}×` : `≤ +${number(aim.limit, unit)}`
}

function number(value: number, unit: string): string {
  return `${value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${unit}`
}

/** The smallest of several interleaved runs: noise only ever adds. */
export function best(values: readonly number[]): number {
  return Math.min(...values)
}

/** The middle of several interleaved runs, where noise goes both ways. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  const upper = sorted[Math.floor(half)] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2
}
