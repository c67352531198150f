import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const DRIVER = fileURLToPath(new URL('testing/conformance-driver.ts', import.meta.url))
const SUITE = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/dist/index.js')

/** Far above what it takes: two starts of Node are in it. */
const CLIENT_LIMIT_MS = 120_000

/** Scenarios for clients that need no authorization, by the revision they are run for. */
const SCENARIOS = [
  ['initialize', '2025-06-18'],
  ['tools_call', '2025-06-18'],
  ['initialize', '2025-11-25'],
  ['tools_call', '2025-11-25'],
  ['elicitation-sep1034-client-defaults', '2025-11-25'],
  ['sse-retry', '2025-11-25'],
  ['json-schema-2020-12-preservation', '2025-11-25'],
  ['tools_call', '2026-07-28'],
  ['request-metadata', '2026-07-28'],
  ['http-standard-headers', '2026-07-28'],
  ['http-custom-headers', '2026-07-28'],
  ['http-invalid-tool-headers', '2026-07-28'],
  ['sep-2322-client-request-state', '2026-07-28'],
  ['json-schema-ref-no-deref', '2026-07-28'],
  ['json-schema-2020-12-preservation', '2026-07-28'],
] as const

/** The era is found out by the client itself in all of them but the one whose mock answers no discovery. */
describe('our client passes the official conformance suite', () => {
  it.for(SCENARIOS)('%s in %s', async ([scenario, version]) => {
    const { output, exitCode } = await judge(scenario, version)
    expect(output).toMatch(/Passed: (\d+)\/\1, 0 failed, 0 warnings/)
    expect(output).toContain('OVERALL: PASSED')
    expect(exitCode).toBe(0)
  })

  it('which can tell a client that does nothing', async () => {
    const { output, exitCode } = await judge('tools_call', '2026-07-28', `${process.execPath} -e 0`)
    expect(output).toContain('OVERALL: FAILED')
    expect(exitCode).toBe(1)
  })
})

function judge(
  scenario: string,
  version: string,
  command = `${process.execPath} ${DRIVER}`,
): Promise<{ output: string; exitCode: number }> {
  const args = [
    SUITE,
    'client',
    '--command',
    command,
    '--scenario',
    scenario,
    '--spec-version',
    version,
    '--timeout',
    String(CLIENT_LIMIT_MS),
  ]
  return new Promise((resolve) => {
    execFile(process.execPath, args, { timeout: CLIENT_LIMIT_MS + 30_000, killSignal: 'SIGKILL' }, (error, stdout, stderr) => {
      const code = error?.code ?? 0
      resolve({ output: stdout + stderr, exitCode: typeof code === 'number' ? code : -1 })
    })
  })
}
