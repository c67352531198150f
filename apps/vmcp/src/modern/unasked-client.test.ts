import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import type { McpClient, RequestOptions } from '@thv/mcp/client/mcp-client'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { describe, expect, it } from 'vitest'
import { unaskedClient } from './unasked-client.ts'

type Kind = 'sampling' | 'elicitation' | 'roots'

const DONE = { content: [{ type: 'text', text: 'done' }] }
const FAILED = { ...DONE, isError: true }

/** A backend that asks, and answers in the same way whatever comes of it. */
function calling(kinds: readonly Kind[], answer: JsonObject | Error, declared: JsonObject = {}) {
  const request = async (_method: string, _params: JsonObject, { handlers }: RequestOptions) => {
    for (const kind of kinds) {
      const ask = async () => await handlers?.[kind]?.({}, { signal: new AbortController().signal })
      await ask().catch(() => undefined)
    }
    if (answer instanceof Error) throw answer
    return answer
  }
  const client = unaskedClient({ era: 'legacy', request } as unknown as McpClient, declared)
  return { client, result: client.request('tools/call', {}, {} as never) }
}

const lacks = (requiredCapabilities: object) => ({ rpcCode: -32021, data: { requiredCapabilities } })

describe('a call whose client is not asked', () => {
  it('has the answer of a backend that asks nothing', async () => {
    expect(await calling([], DONE).result).toBe(DONE)
    expect(await calling([], FAILED).result).toBe(FAILED)
    const own = new McpErrorResponse({ code: -32000, message: 'own' })
    await expect(calling([], own).result).rejects.toBe(own)
  })

  it('fails with all that the client lacks, also where the backend goes on', async () => {
    await expect(calling(['sampling'], DONE).result).rejects.toMatchObject(lacks({ sampling: {} }))
    await expect(calling(['sampling', 'elicitation'], FAILED).result).rejects.toMatchObject(lacks({ sampling: {}, elicitation: {} }))
    const error = new McpErrorResponse({ code: -32601, message: 'no' })
    await expect(calling(['sampling'], error, { elicitation: {} }).result).rejects.toMatchObject(lacks({ sampling: {} }))
  })

  it('succeeds with a backend that goes on without roots, and fails with one that does not', async () => {
    expect(await calling(['roots'], DONE).result).toBe(DONE)
    await expect(calling(['roots'], FAILED).result).rejects.toMatchObject(lacks({ roots: {} }))
    await expect(calling(['roots', 'sampling'], DONE).result).rejects.toMatchObject(lacks({ roots: {}, sampling: {} }))
  })

  it('fails with the setting where the client could be asked', async () => {
    await expect(calling(['elicitation'], DONE, { elicitation: {} }).result).rejects.toMatchObject({
      rpcCode: -32603,
      data: { reason: 'legacy interactive call' },
    })
  })

  it('leads to links that the user has to open first, where the client opens links', async () => {
    const elicitations = [{ mode: 'url', elicitationId: 'x', url: 'https://example.com/', message: 'open' }]
    const error = new McpErrorResponse({ code: -32042, message: 'first', data: { elicitations } })
    const { client, result } = calling([], error, { elicitation: { url: {} } })
    expect(await result).toEqual({
      resultType: 'input_required',
      inputRequests: {
        'elicitation-1': { method: 'elicitation/create', params: { mode: 'url', url: 'https://example.com/', message: 'open' } },
      },
    })
    expect(client.era).toBe('modern')
    for (const declared of [{}, { elicitation: { form: {} } }])
      await expect(calling([], error, declared).result).rejects.toMatchObject(lacks({ elicitation: { url: {} } }))
    // Nothing that could be shown.
    const empty = new McpErrorResponse({ code: -32042, message: 'first' })
    await expect(calling([], empty, { elicitation: { url: {} } }).result).rejects.toBe(empty)
  })
})
