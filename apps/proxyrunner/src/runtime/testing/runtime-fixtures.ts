import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'

export * from '@thv/programs/testing/program-fixtures'

export function configOf(document: Record<string, unknown>): RunConfig {
  const result = readRunConfig({ name: 'demo', image: 'x:1', transport: 'stdio', ...document })
  if (!result.ok) throw new Error(result.problems.map(({ path, message }) => `${path} ${message}`).join('; '))
  return result.config
}
