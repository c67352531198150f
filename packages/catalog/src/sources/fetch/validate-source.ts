import { checkSourceConfig } from './check-source-config.ts'
import type { SourceConfig } from './source-config.ts'

/** Problems of a source, by the same rules as when it was read: one from an older release may break newer ones. */
export function validateSource(source: SourceConfig): readonly string[] {
  const { intervalMs: _, syncRequest: __, ...rest } = source
  // The handler does not decide when it fetches, nor why.
  const spelled = { ...rest, ...(source.managed === undefined && { syncPolicy: { interval: '1m' } }) }
  // Data inline show that it came through the API; what the API refuses for safety was refused there.
  const check = checkSourceConfig(spelled, { path: '', fromApi: source.file?.data !== undefined })
  return check.ok ? [] : check.problems.map(({ pointer, message }) => (pointer === '' ? message : `${pointer}: ${message}`))
}
