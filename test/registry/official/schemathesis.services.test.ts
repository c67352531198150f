import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ensurePythonEnv } from '@thv/testkit/python/python-env'
import { expect, it } from 'vitest'
import { startApi } from '../../../apps/registry/src/api/testing/api-server.ts'
import { createSampleEngine } from '../../../apps/registry/src/api/testing/sample-engine.ts'

const run = promisify(execFile)
/** Of each operation, in the last phase. Work is counted and not timed: a busy machine does as much of it, only later. */
const EXAMPLES = 5
const LIMIT_MS = 600_000

/** The checks that apply to every answer. */
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'unsupported_method',
  'allow_header_conformance',
]

it('Schemathesis finds no 5xx, no status and no answer that our OpenAPI document does not describe', { timeout: 900_000 }, async () => {
  const { bin } = await ensurePythonEnv(['schemathesis==4.32.5'])
  await using engine = await createSampleEngine()
  await using api = await startApi({ engine })
  const folder = await mkdtemp(join(tmpdir(), 'thv-schemathesis-'))
  try {
    const config = join(folder, 'schemathesis.toml')
    // A registry that is there: with names of its own making it would see little but 404.
    await writeFile(config, '[parameters]\n"path.registryName" = "default"\n')
    const args = ['--config-file', config, 'run', `${api.url}/openapi.json`, '--checks', CHECKS.join(',')]
    // One worker: several of them trip over a fault of some Pythons.
    const effort = ['--phases', 'examples,coverage,fuzzing', '--max-examples', String(EXAMPLES), '--seed', '1', '--workers', '1']
    // The root has the routes of /registry/v0.1 once more.
    const paths = ['--exclude-path-regex', '^/v0[.]1/']
    const { stdout, failed } = await run(join(bin, 'st'), [...args, ...effort, ...paths, '--warnings', 'off', '--no-color'], {
      cwd: folder,
      timeout: LIMIT_MS,
      maxBuffer: 1 << 26,
    }).then(
      (done) => ({ ...done, failed: false }),
      (error: { stdout?: string; stderr?: string }) => ({ stdout: `${error.stdout}${error.stderr}`, failed: true }),
    )
    expect(failed, stdout.slice(-8_000)).toBe(false)
    const operations = /Tested:\s+(\d+)/.exec(stdout)?.[1]
    expect(Number(operations), stdout.slice(-2_000)).toBeGreaterThanOrEqual(45)
    const cases = /(\d+) generated/.exec(stdout)?.[1]
    expect(Number(cases), stdout.slice(-2_000)).toBeGreaterThan(100)
    expect(api.logLines.filter((line) => line.includes('request failed'))).toEqual([])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
