import { describe, expect, it } from 'vitest'
import { sampleApi } from './testing/sample-api.ts'

const { api, engine } = await sampleApi()

const base = '/registry/default/v0.1'
const weather = `${base}/servers/io.github.example%2Fweather/versions`

describe('the same question again', () => {
  const targets = [`${base}/servers?limit=2`, `${weather}`, `${weather}/1.9.0`, `${base}/x/dev.toolhive/search?q=weather`]

  it.each(targets)('%s is answered the same, with headers of its own', async (target) => {
    const first = await api.get(target)
    await api.get(target) // from now on it is known
    const second = await api.get(target, { 'x-request-id': 'second' })
    expect(second.text).toBe(first.text)
    expect(second.headers['x-request-id']).toBe('second')
    const own = { 'x-request-id': '', date: '' }
    expect({ ...second.headers, ...own }).toEqual({ ...first.headers, ...own })
    const third = await api.get(target)
    expect(third.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
  })

  it('to another method it is another', async () => {
    const target = `${weather}/1.9.0`
    const [{ bytes }] = [await api.get(target), await api.get(target), await api.get(target)]
    const head = await api.call('HEAD', target)
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers['content-length']).toBe(String(bytes.length))
    expect((await api.call('POST', target)).status).toBe(405)
  })

  it('is computed again when the registry has changed, and when it is gone', async () => {
    const target = `${base}/servers?search=again-and-again`
    for (const expected of [0, 1, 2]) {
      for (const round of [1, 2, 3]) expect((await api.get(target)).json.metadata.count, `round ${round}`).toBe(expected)
      const document = { name: `io.example/again-and-again-${expected}`, description: 'x', version: '1.0.0' }
      expect((await api.call('POST', `${base}/publish`, { body: document })).status).toBe(200)
    }
    engine.forgetViews()
    expect((await api.get(target)).status).toBe(503)
  })
})
