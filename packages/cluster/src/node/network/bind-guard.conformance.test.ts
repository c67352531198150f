import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensurePythonEnv, type PythonEnv } from '@thv/testkit/python/python-env'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { installBindGuard, withBindGuard } from './bind-guard.ts'
import { startChild } from './testing/child.ts'
import { unsafeBinds } from './unsafe-binds.ts'

const APP = `
async def app(scope, receive, send):
    if scope['type'] != 'http':
        return
    await send({'type': 'http.response.start', 'status': 200, 'headers': []})
    await send({'type': 'http.response.body', 'body': b'hello'})
`
const PODS = ['127.214.128.1', '127.214.128.2']
const PORT = 7_300
const cleanups: (() => unknown)[] = []
let folder = ''
let env: PythonEnv

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'thv guard '))
  writeFileSync(join(folder, 'app.py'), APP)
  env = await ensurePythonEnv(['uvicorn==0.38.0', 'uvloop==0.22.1'])
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

describe.skipIf(process.platform !== 'linux')('uvicorn under the bind guard', () => {
  it.each([
    ['asyncio', '0.0.0.0'],
    ['uvloop', '0.0.0.0'],
    ['uvloop', 'localhost'],
    ['uvloop', '::'],
    ['asyncio', '::'],
  ])('%s on %s: two pods have one port', async (loop, host) => {
    const guard = await installBindGuard(join(folder, 'guard'))
    for (const pod of PODS) {
      const args = ['-m', 'uvicorn', 'app:app', '--app-dir', folder, '--loop', loop, '--host', host, '--port', String(PORT)]
      const child = startChild(env.python, [...args, '--log-level', 'warning'], withBindGuard({}, guard.envFor(pod)))
      cleanups.push(() => child.stop())
      await vi.waitFor(async () => expect(await (await fetch(`http://${pod}:${PORT}/`)).text()).toBe('hello'), {
        timeout: 30_000,
        interval: 100,
      })
      expect(await unsafeBinds(child.pid, pod)).toEqual([])
    }
  })
})
