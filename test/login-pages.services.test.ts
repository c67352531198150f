import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectV2 } from '@thv/testkit/oauth/typescript-clients'
import { logIn, registerAt } from '@thv/testkit/oidc/log-in'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { decodeJwt } from 'jose'
import { expect, it, vi } from 'vitest'

/*
 * The page is followed from nothing to a tool call: its commands run as they are printed, with the values that it asks its reader for. The
 * port is a free one, and the provider and the server are on this machine.
 */

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const PAGE = 'docs/how-to/log-in-with-your-identity-provider.md'
const AGENT_SECRET = 'a-secret-of-the-agent-with-32-characters'
/** For machines that have no curl: the part of it that the page uses. */
const CURL = `command -v curl > /dev/null || curl() { '${process.execPath}' -e '
  const options = { user: { type: "string", short: "u" }, data: { type: "string", short: "d", multiple: true } }
  const { values, positionals } = require("node:util").parseArgs({ args: process.argv.slice(1), allowPositionals: true, options })
  const headers = { authorization: "Basic " + btoa(values.user), "content-type": "application/x-www-form-urlencoded" }
  fetch(positionals[0], { method: "POST", headers, body: values.data.join("&") }).then((answer) => answer.text()).then(console.log)
' -- "$@"; }`

it(`${PAGE} leads to a tool call, and its other commands work`, async () => {
  await using stack = new AsyncDisposableStack()
  const blocks = [...readFileSync(join(ROOT, PAGE), 'utf8').matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, commands = '']) => commands)
  const [start = '', exchange = '', ...others] = blocks
  expect(others).toEqual([])
  const folder = mkdtempSync(join(tmpdir(), 'thv-login-page-'))
  stack.defer(() => rmSync(folder, { recursive: true }))
  const idp = stack.use(await startOidcServer())
  const fixture = stack.use(await startFixture({ transport: 'http' }))
  const port = await freePort()
  const here = (text: string) => text.replaceAll('localhost:8080', `localhost:${port}`)
  const issuer = here('http://localhost:8080')

  // 1. Make a client at your provider.
  const { client_id, client_secret } = await registerAt(idp, issuer)
  // 2. Copy the file, and put in the address of your MCP server, the issuer of your provider and the client id.
  const example = JSON.parse(here(readFileSync(join(ROOT, 'deploy/examples/runconfig/login.json'), 'utf8')))
  const [upstream] = example.embedded_auth_server_config.upstreams
  Object.assign(upstream.oidc_config, { issuer_url: idp.issuer, client_id, allow_private_ips: true })
  const agent = { client_id: 'agent', client_secret_env_var: 'AGENT_SECRET', scopes: ['openid'], audiences: [`${issuer}/mcp`] }
  const embedded = { ...example.embedded_auth_server_config, delegate_clients: [agent] }
  const own = {
    port,
    remote_url: fixture.url,
    remote_policy: { allow_loopback: true },
    telemetry_config: { prometheus_port: await freePort() },
  }
  writeFileSync(join(folder, 'login.json'), JSON.stringify({ ...example, ...own, embedded_auth_server_config: embedded }))
  expect(start).toContain('UPSTREAM_CLIENT_SECRET=… npx thv-proxyrunner run --config login.json')
  const command = `exec env ${start.trim().replace('…', client_secret)}`
  const env = { ...process.env, AGENT_SECRET, PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}` }
  const proxy = spawn('sh', ['-c', command.replace('npx ', '')], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  stack.defer(() => ended(proxy))
  let output = ''
  const read = (chunk: Buffer) => {
    output += chunk.toString()
  }
  for (const stream of [proxy.stdout, proxy.stderr]) stream.on('data', read)
  const isReady = async () => {
    expect(proxy.exitCode, output).toBeNull()
    expect((await fetch(`${issuer}/ready`)).status).toBe(200)
  }
  await vi.waitFor(isReady, { timeout: 90_000, interval: 100 })

  // 3. Connect a client.
  const url = here(/Give any MCP client the URL `([^`]+)`/.exec(readFileSync(join(ROOT, PAGE), 'utf8'))?.[1] ?? '')
  await using client = await connectV2({ url, user: 'ada', era: 'modern', grantTypes: ['authorization_code', 'refresh_token'] })
  expect(await client.tools()).toContain('echo')
  expect(JSON.stringify(await client.call('echo', { text: 'from the page' }))).toContain('from the page')

  // Programs that act for users.
  const { accessToken } = await logIn(issuer, { user: 'ada', scope: 'openid' })
  const shell = { cwd: folder, env: { ...env, SECRET: AGENT_SECRET, TOKEN: accessToken }, timeout: 60_000 }
  const { stdout } = await promisify(execFile)('sh', ['-e', '-c', `${CURL}\n${here(exchange)}`], shell)
  const { access_token: exchanged = '' } = JSON.parse(stdout) as { access_token?: string }
  expect(decodeJwt(exchanged)).toMatchObject({ sub: decodeJwt(accessToken).sub, act: { sub: 'agent' } })
  for (const secret of [client_secret, AGENT_SECRET, accessToken]) expect(output).not.toContain(secret)
})

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const limit = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await once(child, 'exit')
  clearTimeout(limit)
}
