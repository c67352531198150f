// npm start: one published MCP server behind the proxy, until Ctrl-C. Everything it writes goes to .thv.
import { spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = `${root}.thv`
const NAME = 'everything'
const IMAGE = 'npx://@modelcontextprotocol/server-everything@2026.8.31'
const READY_WITHIN_MS = 180_000

const port = await freePort([8080, 8081, 8082, 0])
const url = `http://127.0.0.1:${port}/mcp`
mkdirSync(folder, { recursive: true })
const configFile = `${folder}/${NAME}.runconfig.json`
writeFileSync(
  configFile,
  `${JSON.stringify({ schema_version: 'v0.1.0', name: NAME, image: IMAGE, cmd_args: ['stdio'], transport: 'stdio', host: '127.0.0.1', port }, null, 2)}\n`,
)

console.log(`Starting ${IMAGE} behind the proxy (the first start downloads it) …`)
const runner = spawn(
  process.execPath,
  [`${root}apps/proxyrunner/bin/thv-proxyrunner.js`, 'run', '--config', configFile, '--runtime', 'local'],
  {
    env: { ...process.env, THV_DATA_DIR: `${folder}/data` },
    stdio: ['ignore', 'ignore', 'inherit'],
  },
)
runner.on('exit', (code, signal) => {
  rmSync(`${folder}/servers.json`, { force: true })
  process.exit(code ?? (signal === 'SIGTERM' ? 143 : 130))
})
// The runner drains by itself; this process only waits for it. Ctrl-C reaches both, as they share a terminal.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => runner.kill('SIGTERM'))

if (!(await answers(READY_WITHIN_MS))) {
  console.error(`The server did not answer within ${READY_WITHIN_MS / 1000} s; the lines above say why.`)
  runner.kill('SIGTERM')
} else {
  writeFileSync(`${folder}/servers.json`, `${JSON.stringify({ [NAME]: url }, null, 2)}\n`)
  console.log(`
${NAME} is ready at ${url}

Try next, in another terminal:
  npx thv tools ${NAME}
  npx thv call ${NAME} echo message=hello

In an MCP client:
  {"mcpServers": {"${NAME}": {"type": "streamable-http", "url": "${url}"}}}

Ctrl-C stops it.`)
}

/** A real handshake, so that "ready" means that the server behind the proxy answers. Its session is ended again. */
async function answers(withinMs) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'npm-start', version: '0.1.0' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
  const deadline = Date.now() + withinMs
  while (Date.now() < deadline && runner.exitCode === null) {
    try {
      const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(60_000) })
      await response.text()
      const session = response.headers.get('mcp-session-id')
      if (session) await fetch(url, { method: 'DELETE', headers: { 'mcp-session-id': session }, signal: AbortSignal.timeout(5_000) })
      if (response.ok) return true
    } catch {
      // Not listening yet, or still downloading: the deadline decides.
    }
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  return false
}

/** The first of the ports that can be bound. */
async function freePort(candidates) {
  for (const candidate of candidates) {
    const found = await new Promise((resolve) => {
      const server = createServer()
      server.once('error', () => resolve(undefined))
      server.listen(candidate, '127.0.0.1', () => {
        const { port } = server.address()
        server.close(() => resolve(port))
      })
    })
    if (found !== undefined) return found
  }
  throw new Error('no port of 127.0.0.1 can be bound')
}
