import { startBackend } from '@thv/http/testing/backend'
import { describe, expect, it } from 'vitest'
import { askTools } from './ask-tools.ts'

const never = new AbortController().signal

/** A server of 2025-06-18 whose tools have descriptions of this length, each on a page of its own. */
function serverOf(tools: number, textLength: number) {
  return startBackend((request, response) => {
    const { id, method, params } = JSON.parse(request.body || '{}') as { id?: number; method?: string; params?: { cursor?: string } }
    const answer = (body: object) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...body }))
    const at = Number(params?.cursor ?? 0)
    if (method === 'initialize')
      answer({
        result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } },
      })
    else if (method === 'tools/list')
      answer({
        result: {
          tools: [{ name: `tool-${at}`, description: 'x'.repeat(textLength), inputSchema: { type: 'object' } }],
          ...(at + 1 < tools && { nextCursor: String(at + 1) }),
        },
      })
    else if (id !== undefined) answer({ error: { code: -32601, message: 'Method not found' } })
    else response.writeHead(202).end()
  })
}

describe('askTools', () => {
  const ask = (url: string) => askTools(`${url}/mcp#name`, never, { timeoutMs: 30_000, allowLoopback: true })

  it('has the names of all pages', async () => {
    await using server = await serverOf(3, 1_000)
    expect(await ask(server.url)).toEqual(['tool-0', 'tool-1', 'tool-2'])
  })

  it.each([
    ['an answer of three megabytes', 1, 3 << 20],
    ['pages without an end', 1_000, 10],
  ])('refuses %s', async (_, tools, textLength) => {
    await using server = await serverOf(tools, textLength)
    await expect(ask(server.url)).rejects.toThrow()
    expect(server.requests.filter(({ body }) => body.includes('"tools/list"')).length).toBeLessThanOrEqual(20)
  })

  it.each(['http://169.254.169.254/latest', 'http://[fd00:ec2::254]/latest'])('never calls a metadata service: %s', async (url) => {
    await expect(ask(url)).rejects.toMatchObject({ message: expect.stringMatching(/169\.254\.169\.254|fd00:ec2::254/) })
  })
})
