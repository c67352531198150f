export interface Outcome {
  readonly passed: readonly string[]
  readonly failed: readonly string[]
  readonly leftOut: readonly string[]
  /** In words; empty when the run is good. */
  readonly problems: readonly string[]
}

/**
 * Judges a JUnit report of the suite. Every conformance spec of the API machinery must have passed or be in `reasons`, and every name there
 * must be one of the suite's. With `focus` only the specs that match it are judged.
 */
export function judge(report: string, reasons: Readonly<Record<string, string>>, focus?: RegExp): Outcome {
  const [passed, failed, leftOut, problems]: [string[], string[], string[], string[]] = [[], [], [], []]
  const specs = [...report.matchAll(SPEC)].map(([, attributes = '']) => ({
    name: attribute(attributes, 'name'),
    status: attribute(attributes, 'status'),
  }))
  const judged = specs.filter(({ name }) => name.includes('[sig-api-machinery]') && name.includes('[Conformance]'))
  for (const { name, status } of judged) {
    const reason = Object.keys(reasons).find((key) => name.includes(key))
    if (reason !== undefined) leftOut.push(name)
    else if (focus !== undefined && !focus.test(name)) continue
    else if (status === 'passed') passed.push(name)
    else {
      failed.push(name)
      problems.push(`${status || 'not run'}: ${name}`)
    }
  }
  for (const key of Object.keys(reasons))
    if (!judged.some(({ name }) => name.includes(key))) problems.push(`left out, but no spec is called so: ${key}`)
  if (passed.length === 0) problems.push('no spec has passed')
  return { passed, failed, leftOut, problems }
}

const SPEC = /<testcase\b([^>]*)>/g

function attribute(text: string, name: string): string {
  const value = new RegExp(`\\b${name}="([^"]*)"`).exec(text)?.[1] ?? ''
  return value
    .replaceAll('&#39;', "'")
    .replaceAll('&#34;', '"')
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}
