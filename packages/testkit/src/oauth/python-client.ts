import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { signIn } from '../oidc/sign-in.ts'
import { ensurePythonEnv } from '../python/python-env.ts'
import { type CallResult, type OAuthClient, type OAuthClientOptions, REDIRECT_URI } from './oauth-client.ts'

interface Reply {
  readonly visit?: string
  readonly tools?: string[]
  readonly content?: CallResult['content']
  readonly error?: string
}

const REPLY_LIMIT_MS = 60_000

/** The Python SDK in a process of its own. It writes a line when it wants a browser, and when it has a result. */
export async function connectPython(options: OAuthClientOptions): Promise<OAuthClient> {
  const { url, user, era, grantTypes, caFile, cookies, identity = {}, redirectUri = REDIRECT_URI } = options
  const { python } = await ensurePythonEnv(['mcp==2.3.0', 'uv==0.13.7'])
  const script = fileURLToPath(new URL('oauth_client.py', import.meta.url))
  const mode = era === 'modern' ? 'auto' : 'legacy'
  const child = spawn(python, [script, url, mode, redirectUri, JSON.stringify(identity), ...grantTypes], {
    env: { ...process.env, ...(caFile !== undefined && { SSL_CERT_FILE: caFile }) },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  const visits: URL[] = []
  let problems = ''
  child.stderr.on('data', (chunk: Buffer) => {
    problems = `${problems}${chunk.toString()}`.slice(-4_000)
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()

  async function next(): Promise<Reply> {
    const limit = setTimeout(() => child.kill('SIGKILL'), REPLY_LIMIT_MS)
    const { value, done } = await lines.next()
    clearTimeout(limit)
    if (done) throw new Error(`the Python client ended: ${problems}`)
    return JSON.parse(value) as Reply
  }

  async function ask(question: object): Promise<Reply> {
    child.stdin.write(`${JSON.stringify(question)}\n`)
    for (;;) {
      const reply = await next()
      if (reply.error !== undefined) throw new Error(`${reply.error}\n${problems}`)
      if (reply.visit === undefined) return reply
      visits.push(new URL(reply.visit))
      const landed = await signIn(reply.visit, { user, redirectUri, ...(cookies !== undefined && { cookies }) })
      child.stdin.write(`${JSON.stringify(Object.fromEntries(landed.searchParams))}\n`)
    }
  }

  const client: OAuthClient = {
    visits,
    tools: async () => (await ask({ tools: true })).tools ?? [],
    call: async (tool, args = {}) => ({ content: (await ask({ call: tool, arguments: args })).content ?? [] }),
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      const limit = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await exited
      clearTimeout(limit)
    },
  }
  try {
    await ask({ connect: true })
    return client
  } catch (error) {
    await client[Symbol.asyncDispose]()
    throw error
  }
}
