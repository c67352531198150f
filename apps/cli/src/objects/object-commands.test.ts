import { startApiServer } from '@thv/cluster/apiserver/api-server'
import { describe } from 'vitest'
import { objectStory } from './testing/object-story.ts'

describe('on the embedded API server', () => {
  objectStory(async () => {
    const server = await startApiServer()
    return { access: server, namespace: 'default', stop: () => server.close() }
  })
})
