import { readFile } from 'node:fs/promises'
import { Agent as PlainAgent, request as plainRequest } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { rootCertificates } from 'node:tls'
import { ThvError } from '@thv/kernel/errors'
import type { Env } from '../program-environment.ts'

export interface DownloadOptions {
  readonly env: Env
  readonly caFile: string | undefined
  readonly accept: string
  readonly limitBytes: number
  readonly signal: AbortSignal
}

const MAX_REDIRECTS = 5

/**
 * GET with redirects, through the proxy that the variables name. Credentials of the address go to its own host only and appear in no
 * error. Throws `package_install_failed`. Not `fetch`, which would stay in the memory of a process that lives for days.
 */
export async function download(address: string, options: DownloadOptions): Promise<{ readonly url: string; readonly body: Buffer }> {
  const ca = options.caFile === undefined ? undefined : [...rootCertificates, await readFile(options.caFile, 'utf8').catch(() => '')]
  let url = new URL(address)
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const answer = await get(url, { ...options, ca }).catch((cause: unknown) => {
      options.signal.throwIfAborted()
      if (cause instanceof ThvError) throw cause
      throw new ThvError('package_install_failed', `${url.host} cannot be reached`, { cause })
    })
    if (answer.location === undefined) return { url: url.href, body: answer.body }
    const next = URL.parse(answer.location, url)
    if (next === null || !/^https?:$/.test(next.protocol) || (url.protocol === 'https:' && next.protocol === 'http:'))
      throw new ThvError('package_install_failed', `${url.host} redirects to an address that is not allowed`)
    if (next.host === url.host && next.username === '') Object.assign(next, { username: url.username, password: url.password })
    url = next
  }
  throw new ThvError('package_install_failed', `${url.host} redirects more than ${MAX_REDIRECTS} times`)
}

interface Answer {
  readonly location: string | undefined
  readonly body: Buffer
}

function get(url: URL, { env, ca, accept, limitBytes, signal }: DownloadOptions & { ca: string[] | undefined }): Promise<Answer> {
  const proxyEnv = { ...env }
  const isSecure = url.protocol === 'https:'
  const agent = isSecure ? new SecureAgent({ proxyEnv, ...(ca && { ca }) }) : new PlainAgent({ proxyEnv })
  const send = isSecure ? secureRequest : plainRequest
  return new Promise<Answer>((resolve, reject) => {
    const call = send(url, { agent, signal, headers: { accept, 'user-agent': 'thv' } }, (response) => {
      const { statusCode = 0, headers } = response
      if (statusCode >= 300 && statusCode < 400 && headers.location !== undefined) {
        response.resume()
        resolve({ location: headers.location, body: Buffer.alloc(0) })
        return
      }
      if (statusCode !== 200) {
        response.resume()
        reject(new ThvError('package_install_failed', `${url.host} answers ${statusCode} for ${url.pathname}`))
        return
      }
      const parts: Buffer[] = []
      let bytes = 0
      response.on('data', (part: Buffer) => {
        bytes += part.length
        parts.push(part)
        if (bytes > limitBytes)
          response.destroy(new ThvError('package_install_failed', `${url.host} sends more than ${limitBytes} bytes for ${url.pathname}`))
      })
      response.once('error', reject)
      response.once('end', () => resolve({ location: undefined, body: Buffer.concat(parts) }))
    })
    call.once('error', reject)
    call.end()
  }).finally(() => agent.destroy())
}
