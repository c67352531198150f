/** One measured figure, with a baseline from the same run: these machines are shared and noisy, so only comparisons mean something. */
export interface Figure {
  name: string
  unit: string
  value: number
  baseline: number
  /** `ratio`: value / baseline must not be above the limit. `difference`: value - baseline must not be above the limit. */
  aim: { of: 'ratio' | 'difference'; limit: number }
}

export type Verdict = 'met' | 'near' | 'missed' | 'failed'

/** Within the aim: met. Up to 20 % off: near, that is noise. Up to 2× off: missed, a finding. More: failed. */
export function judge(figure: Figure): Verdict {
  const off = reached(figure) / figure.aim.limit
  if (off <= 1) return 'met'
  if (off <= 1.2) return 'near'
  return off <= 2 ? 'missed' : 'failed'
}

export function reached(figure: Figure): number {
  return figure.aim.of === 'ratio' ? figure.value / figure.baseline : figure.value - figure.baseline
}

export function renderTable(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => [
    figure.name,
    number(figure.value, figure.unit),
    number(figure.baseline, figure.unit),
    `${(figure.value / figure.baseline).toFixed(2)}×`,
    figure.aim.of === 'ratio' ? `≤ ${figure.aim.limit}×` : `≤ +${number(figure.aim.limit, figure.unit)}`,
    judge(figure),
  ])
  const table = [['figure', 'value', 'baseline', 'ratio', 'aim', 'verdict'], ...rows]
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  return table
    .map((row) => row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  '))
    .join('\n')
}

function number(value: number, unit: string): string {
  return `${value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${unit}`
}

/** The smallest of several interleaved runs: noise only ever adds. */
export function best(values: readonly number[]): number {
  return Math.min(...values)
}
