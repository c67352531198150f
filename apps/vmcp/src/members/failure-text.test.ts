import { ThvError } from '@thv/kernel/errors'
import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import { describe, expect, it } from 'vitest'
import { failureText } from './failure-text.ts'

describe('a failure at a backend, in the log', () => {
  const said = new McpErrorResponse({ code: -32042, message: 'first open https://example.com/consent/one-time' })

  it('has no link that the backend sent, also where it is a cause', () => {
    expect(failureText(said)).toBe('first open [link]')
    expect(failureText(new ThvError('mcp_session_lost', 'gone', { cause: said }))).toBe('gone: first open [link]')
  })

  it('has the addresses of our own errors', () => {
    expect(failureText(new ThvError('backend_refused', 'no connection to http://one:8080'))).toBe('no connection to http://one:8080')
  })
})
