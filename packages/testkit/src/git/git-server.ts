import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureGit, gitEnvironment } from './git-program.ts'
import { createGitRepository, type GitRepository } from './git-repository.ts'

/** git's own server for HTTP, on 127.0.0.1 or another address of this machine. */
export interface GitServer extends AsyncDisposable {
  readonly url: string
  readonly requests: readonly SeenGitRequest[]
  /** The behavior towards the next requests. */
  readonly behaviour: GitServerBehaviour
  repository(name: string, initArgs?: readonly string[]): Promise<GitRepository>
}

export interface SeenGitRequest {
  readonly method: string
  readonly url: string
  readonly authorization: string | undefined
  /** As Latin-1. */
  readonly body: string
  /** Bytes of the answer's body so far. */
  answered: number
}

export interface GitServerBehaviour {
  /** Does as if it had never heard of protocol version 2. */
  legacy?: boolean
  /** Value of the only good Authorization header. */
  authorization?: string | undefined
}

export async function startGitServer({ host = '127.0.0.1' }: { host?: string } = {}): Promise<GitServer> {
  await ensureGit()
  const root = await mkdtemp(join(tmpdir(), 'git-server-'))
  const requests: SeenGitRequest[] = []
  const behaviour: GitServerBehaviour = {}
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined))
  })

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const { method = '', url = '', headers } = request
    const seen = { method, url, authorization: headers.authorization, body: body.toString('latin1'), answered: 0 }
    requests.push(seen)
    if (behaviour.authorization !== undefined && headers.authorization !== behaviour.authorization) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end('no')
      return
    }
    await runBackend({ request, body, root, legacy: behaviour.legacy === true, response, seen })
  }

  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    requests,
    behaviour,
    repository: (name, initArgs) => createGitRepository(root, name, initArgs),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await rm(root, { recursive: true, force: true })
    },
  }
}

interface BackendRun {
  readonly request: IncomingMessage
  readonly body: Buffer
  readonly root: string
  readonly legacy: boolean
  readonly response: ServerResponse
  readonly seen: SeenGitRequest
}

/** RFC 3875, as much as git needs. */
async function runBackend({ request, body, root, legacy, response, seen }: BackendRun): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://localhost')
  const protocol = request.headers['git-protocol']
  const child = spawn('git', ['http-backend'], {
    env: {
      ...gitEnvironment,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: decodeURIComponent(url.pathname),
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      CONTENT_LENGTH: String(body.length),
      REMOTE_ADDR: '127.0.0.1',
      ...(typeof protocol === 'string' && !legacy && { GIT_PROTOCOL: protocol, HTTP_GIT_PROTOCOL: protocol }),
    },
    stdio: ['pipe', 'pipe', 'ignore'],
    timeout: 60_000,
    killSignal: 'SIGKILL',
  })
  response.on('close', () => child.kill('SIGKILL'))
  child.stdin.on('error', () => {}) // it may refuse before it has read everything
  child.stdin.end(body)
  let head = ''
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    let content = chunk
    if (!response.headersSent) {
      head += chunk.toString('latin1')
      const end = head.indexOf('\r\n\r\n')
      if (end < 0) continue
      writeHead(response, head.slice(0, end))
      content = Buffer.from(head.slice(end + 4), 'latin1')
    }
    seen.answered += content.length
    if (!response.write(content)) await Promise.race([drained(response), closed(response)])
  }
  if (!response.headersSent) response.writeHead(500)
  response.end()
}

function writeHead(response: ServerResponse, head: string): void {
  for (const line of head.split('\r\n')) {
    const [, name = '', value = ''] = /^([^:]+):\s*(.*)$/.exec(line) ?? []
    if (name.toLowerCase() === 'status') response.statusCode = Number.parseInt(value, 10)
    else if (name !== '') response.setHeader(name, value)
  }
  response.flushHeaders()
}

function drained(response: ServerResponse): Promise<unknown> {
  return new Promise((resolve) => response.once('drain', resolve))
}

function closed(response: ServerResponse): Promise<unknown> {
  return new Promise((resolve) => response.once('close', resolve))
}
