import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const DRIVER = fileURLToPath(new URL('testing/login-driver.ts', import.meta.url))
const SUITE = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/dist/index.js')

/** Far above what it takes: two starts of Node are in it. */
const CLIENT_LIMIT_MS = 120_000

/** All scenarios of authorization but those of extensions, each with the newest revision that has it. */
const SCENARIOS = [
  ['auth/2025-03-26-oauth-metadata-backcompat', '2025-03-26'],
  ['auth/2025-03-26-oauth-endpoint-fallback', '2025-03-26'],
  ...[
    'metadata-default',
    'metadata-var1',
    'metadata-var2',
    'metadata-var3',
    'basic-cimd',
    'scope-from-www-authenticate',
    'scope-from-scopes-supported',
    'scope-omitted-when-undefined',
    'scope-step-up',
    'scope-retry-limit',
    'token-endpoint-auth-basic',
    'token-endpoint-auth-post',
    'token-endpoint-auth-none',
    'pre-registration',
    'resource-mismatch',
    'offline-access-scope',
    'offline-access-not-supported',
    'authorization-server-migration',
    'iss-supported',
    'iss-not-advertised',
    'iss-supported-missing',
    'iss-wrong-issuer',
    'iss-unexpected',
    'iss-normalized',
    'metadata-issuer-mismatch',
  ].map((name) => [`auth/${name}`, '2026-07-28'] as const),
] as const

describe('thv passes the authorization scenarios of the official conformance suite', () => {
  it.for(SCENARIOS)('%s in %s', async ([scenario, version]) => {
    const { output, exitCode } = await judge(scenario, version)
    expect(output).toMatch(/Passed: (\d+)\/\1, 0 failed, 0 warnings/)
    expect(exitCode).toBe(0)
  })

  it('counts 27 of them, and fails a client that does nothing', async () => {
    expect(SCENARIOS).toHaveLength(27)
    const { output, exitCode } = await judge('auth/metadata-default', '2026-07-28', `${process.execPath} -e 0`)
    expect(output).toContain('OVERALL: FAILED')
    expect(exitCode).toBe(1)
  })
})

function judge(
  scenario: string,
  version: string,
  command = `${process.execPath} ${DRIVER}`,
): Promise<{ output: string; exitCode: number }> {
  const limit = ['--timeout', String(CLIENT_LIMIT_MS)]
  const args = [SUITE, 'client', '--command', command, '--scenario', scenario, '--spec-version', version, ...limit]
  return new Promise((resolve) => {
    execFile(process.execPath, args, { timeout: CLIENT_LIMIT_MS + 30_000, killSignal: 'SIGKILL' }, (error, stdout, stderr) => {
      const code = error?.code ?? 0
      resolve({ output: stdout + stderr, exitCode: typeof code === 'number' ? code : -1 })
    })
  })
}
