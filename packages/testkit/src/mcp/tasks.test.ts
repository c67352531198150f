import { describe, expect, it, vi } from 'vitest'
import { startFixture } from './fixture.ts'
import { sendModern } from './testing/raw-client.ts'
import type { JsonObject, RpcResponse } from './wire/json-rpc.ts'

const META = {
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
}

describe('tasks', () => {
  it('tell a listening client about each step', async () => {
    await using fixture = await startFixture()
    const created = await call(fixture.url, 'tools/call', { name: 'confirm_delete', arguments: { filename: 'a.txt' } })
    expect(created).toMatchObject({ resultType: 'task', status: 'input_required' })
    const { taskId } = created

    const filter = { notifications: { taskIds: [taskId] } }
    const listening = sendModern(fixture.url, 'subscriptions/listen', filter, { id: 'watch', meta: META })
    await vi.waitFor(() => expect(fixture.stats.listens).toBe(1), 10_000)
    const { inputRequests } = await call(fixture.url, 'tasks/get', { taskId })
    const [key = ''] = Object.keys(inputRequests as JsonObject)
    await call(fixture.url, 'tasks/update', { taskId, inputResponses: { [key]: { action: 'accept', content: { confirm: true } } } })
    await vi.waitFor(async () => expect(await call(fixture.url, 'tasks/get', { taskId })).toMatchObject({ status: 'completed' }), 10_000)
    fixture.admin.endListens()

    const result = { content: [{ type: 'text', text: 'Deleted a.txt' }] }
    expect((await listening).messages.slice(1, -1)).toMatchObject([
      {
        method: 'notifications/tasks',
        params: { taskId, status: 'working', _meta: { 'io.modelcontextprotocol/subscriptionId': 'watch' } },
      },
      { method: 'notifications/tasks', params: { taskId, status: 'completed', result } },
    ])
  })
})

async function call(url: string, method: string, params: JsonObject): Promise<JsonObject> {
  const [message] = (await sendModern(url, method, params, { meta: META })).messages as RpcResponse[]
  if (!message?.result) throw new Error(`${method}: ${JSON.stringify(message?.error)}`)
  return message.result
}
