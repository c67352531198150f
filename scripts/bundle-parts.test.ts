import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundleParts, ensureBundle } from './bundle.mjs'
import { ROOT } from './run.ts'

const LIMIT_MS = 120_000
const RUNNER = 'apps/proxyrunner/src/main.ts'

describe('a runner loads what its run config needs', { timeout: 2 * LIMIT_MS }, () => {
  let folder: string
  let backend: Server

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'thv-parts-'))
    backend = createServer((_, response) => void response.writeHead(405).end()).listen(0, '127.0.0.1')
    await once(backend, 'listening')
  })
  afterAll(() => {
    backend.closeAllConnections()
    backend.close()
    rmSync(folder, { recursive: true })
  })

  const httpConfig = () => ({
    transport: 'streamable-http',
    remote_url: `http://127.0.0.1:${(backend.address() as AddressInfo).port}/mcp`,
    remote_policy: { allow_loopback: true },
  })

  test('a plain HTTP proxy loads no YAML, WebSockets, Redis, Kubernetes client or authorization server', async () => {
    const loaded = await loadedBy(folder, httpConfig())
    expect(loaded.sources).toContain('apps/proxyrunner/src/runner.ts')
    expect(loaded.sources).toContain('packages/gateway/src/gateway.ts')
    const others =
      /node_modules\/(?:yaml|ws|ioredis|@ioredis|oidc-provider|koa)\/|^packages\/(?:kube|authserver)\/|^apps\/proxyrunner\/src\/runtime\/(?:kubernetes|local)\//
    expect(loaded.sources.filter((source) => others.test(source))).toEqual([])
    // At most the parser that undici selects at its first connection.
    expect(loaded.files.filter((file) => /^undici-/.test(file) && !/^undici-llhttp_simd-wasm-/.test(file))).toEqual([])
  })

  test('policies bring YAML, in their worker', async () => {
    const authz_config = { version: '1.0', type: 'cedarv1', cedar: { policies: ['permit(principal, action, resource);'] } }
    const { sources } = await loadedBy(folder, { ...httpConfig(), authz_config })
    expect(sources.some((source) => source.startsWith('node_modules/yaml/'))).toBe(true)
  })

  test('an authorization server is loaded where it is configured', async () => {
    const issuer = 'https://mcp.example.com'
    const { sources } = await loadedBy(folder, {
      ...httpConfig(),
      oidc_config: { issuer, audience: `${issuer}/mcp` },
      embedded_auth_server_config: {
        issuer,
        allowed_audiences: [`${issuer}/mcp`],
        upstreams: [{ name: 'corp', type: 'oidc', oidc_config: { issuer_url: 'https://idp.example.com', client_id: 'x' } }],
        disable_upstream_token_injection: true,
      },
    })
    expect(sources).toContain('packages/authserver/src/auth-server.ts')
    expect(sources).toContain('node_modules/oidc-provider/lib/provider.js')
  })

  test('a server of its own brings the local runtime and no Kubernetes client', async () => {
    const config = { transport: 'stdio', image: `exec://${process.execPath}`, cmd_args: ['-e', 'process.stdin.resume()'] }
    const { sources } = await loadedBy(folder, config)
    expect(sources).toContain('apps/proxyrunner/src/runtime/local/local-runtime.ts')
    expect(sources.filter((source) => /^packages\/kube\/|node_modules\/(?:yaml|ws)\//.test(source))).toEqual([])
  })

  test('the parts hold all that a run config may need, and no text of a parser is in another file', async () => {
    const bundle = await ensureBundle(RUNNER)
    const parts = bundleParts(bundle) ?? []
    const sources = [bundle, ...parts].flatMap(sourcesOf)
    for (const source of ['node_modules/yaml/dist/index.js', 'node_modules/ws/lib/websocket.js', 'packages/kube/src/index.ts'])
      expect(sources).toContain(source)
    const parsers = parts.map((path) => basename(path)).filter((name) => name.startsWith('undici-'))
    expect(parsers.map((name) => name.replace(/-[0-9a-f]{8}\.cjs$/, '')).toSorted()).toEqual([
      'undici-llhttp-wasm',
      'undici-llhttp_simd-wasm',
      'undici-no-simd',
      'undici-simd',
    ])
    const withParser = [bundle, ...parts].filter((path) => /["'`]AGFzbQ/.test(readFileSync(path, 'utf8')))
    expect(withParser.map((path) => basename(path)).toSorted()).toEqual(parsers.toSorted())
  })
})

interface Loaded {
  /** Names of the files beside the bundle. */
  readonly files: readonly string[]
  /** Modules inside them. */
  readonly sources: readonly string[]
}

/** Starts the bundled runner, and ends it when it serves. */
async function loadedBy(folder: string, config: object): Promise<Loaded> {
  const configFile = join(folder, 'runconfig.json')
  writeFileSync(configFile, JSON.stringify({ schema_version: 'v0.1.0', name: 'parts', host: '127.0.0.1', port: 0, ...config }))
  const hook = join(ROOT, 'scripts/testing/print-loaded.mjs')
  const args = ['--import', hook, await ensureBundle(RUNNER), 'run', '--config', configFile, '--runtime', 'local']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: LIMIT_MS, killSignal: 'SIGKILL' })
  const printed = await linesUntilEnd(child, / is served at /)
  const paths = printed.flatMap((line) => (line.startsWith('loaded ') ? [fileURLToPath(line.slice('loaded '.length))] : []))
  expect(paths, printed.join('\n')).not.toEqual([])
  return { files: paths.map((path) => basename(path)), sources: paths.flatMap(sourcesOf) }
}

async function linesUntilEnd(child: ChildProcess, ready: RegExp): Promise<string[]> {
  const lines: string[] = []
  for (const input of [child.stdout, child.stderr])
    if (input !== null)
      createInterface({ input }).on('line', (line) => {
        lines.push(line)
        if (ready.test(line)) child.kill('SIGTERM')
      })
  const [code] = (await once(child, 'close')) as [number | null]
  expect(code, lines.join('\n')).toBe(0)
  return lines
}

/** By the map; a file without one is a module by itself. */
function sourcesOf(path: string): string[] {
  if (!existsSync(`${path}.map`)) return [path]
  const { sources } = JSON.parse(readFileSync(`${path}.map`, 'utf8')) as { sources: string[] }
  return sources.map((source) => source.replace(/^(?:\.\.\/)+/, ''))
}
