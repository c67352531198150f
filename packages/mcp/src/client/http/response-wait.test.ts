import { ThvError } from '@thv/kernel/errors'
import { describe, expect, it } from 'vitest'
import type { JsonRpcRequest } from '../../json-rpc.ts'
import { clientContext } from '../client-context.ts'
import type { HttpEndpoint } from './http-endpoint.ts'
import { LegacyHttpLink } from './legacy-http-link.ts'
import { ModernHttpLink } from './modern-http-link.ts'

describe.each([ModernHttpLink, LegacyHttpLink])('a request that cannot be written: %s', (HttpLink) => {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', arguments: { n: 1n } } } as unknown as JsonRpcRequest
  const link = new HttpLink({} as HttpEndpoint, clientContext({ clientInfo: { name: 'test', version: '1' } }))
  const send = (signal: AbortSignal) => link.request(message, { signal, receive: () => {} })

  it('fails', async () => {
    await expect(send(new AbortController().signal)).rejects.not.toBeInstanceOf(ThvError)
  })

  it('fails once where it was given up before, with the reason', async () => {
    const unheard: unknown[] = []
    const onUnheard = (error: unknown) => void unheard.push(error)
    process.on('unhandledRejection', onUnheard)
    try {
      const reason = new ThvError('aborted', 'not wanted any more')
      await expect(send(AbortSignal.abort(reason))).rejects.toBe(reason)
      await new Promise((resolve) => setImmediate(resolve))
      expect(unheard).toEqual([])
    } finally {
      process.off('unhandledRejection', onUnheard)
    }
  })
})
