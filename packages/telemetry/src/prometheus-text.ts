/*
 * The text exposition format 0.0.4. Help texts escape backslash and line feed, label values the double quote as well.
 */

export function metricHeader(name: string, help: string, type: string): string {
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n`
}

export function escapeLabelValue(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}

/** `labels` is the inside of the braces, escaped. */
export function sampleLine(name: string, labels: string, value: number): string {
  return `${name}${labels === '' ? '' : `{${labels}}`} ${formatNumber(value)}\n`
}

export interface HistogramState {
  readonly bounds: Float64Array
  readonly counts: Float64Array
  readonly sum: number
}

/** Buckets are cumulative, the last one is the count of all. */
export function histogramLines(name: string, labels: string, { bounds, counts, sum }: HistogramState): string {
  const lead = labels === '' ? '' : `${labels},`
  let text = ''
  let total = 0
  counts.forEach((count, i) => {
    total += count
    text += sampleLine(`${name}_bucket`, `${lead}le="${formatNumber(bounds[i] ?? Infinity)}"`, total)
  })
  return `${text}${sampleLine(`${name}_sum`, labels, sum)}${sampleLine(`${name}_count`, labels, total)}`
}

/** As Go's parser reads them. */
function formatNumber(value: number): string {
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : String(value)
}
