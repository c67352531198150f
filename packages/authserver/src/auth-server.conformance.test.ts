import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { signIn } from '@thv/testkit/oidc/sign-in'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestAuthServer, type TestAuthServer } from './testing/test-auth-server.ts'

const SUITE = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/dist/index.js')
/** Far above what it takes. */
const LIMIT_MS = 120_000

describe('the authorization server passes the official conformance suite', () => {
  let server: TestAuthServer
  beforeAll(async () => {
    server = await startTestAuthServer()
  })
  afterAll(async () => await server[Symbol.asyncDispose]())

  it('conformance authorization: both scenarios, with a user who logs in upstream', async () => {
    const port = await freePort()
    const redirectUri = `http://127.0.0.1:${port}/callback`
    const registered = (await (await server.register({ redirect_uris: [redirectUri] })).json()) as { client_id: string }
    const args = [
      'authorization',
      '--url',
      server.issuer,
      '--client-id',
      registered.client_id,
      '--resource',
      server.resource,
      '-p',
      String(port),
    ]
    const child = spawn(process.execPath, [SUITE, ...args], { signal: AbortSignal.timeout(LIMIT_MS), killSignal: 'SIGKILL' })
    let output = ''
    let visited = false
    const visits: Promise<unknown>[] = []
    const read = (chunk: Buffer) => {
      output += chunk.toString()
      const [url] = new RegExp(`${server.issuer}/oauth/authorize\\?\\S+`).exec(output) ?? []
      if (url === undefined || visited || !output.includes('Callback server started')) return
      visited = true
      visits.push(signIn(url, { user: 'ada', redirectUri }).then((landed) => fetch(landed)))
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    const exitCode = await new Promise((resolve) => child.once('close', resolve))
    await Promise.all(visits)
    expect(output).toContain('✓ authorization-server-metadata-endpoint: 1 passed, 0 failed')
    expect(output).toContain('✓ authorization-code-grant: 1 passed, 0 failed')
    expect(exitCode).toBe(0)
  })
})
