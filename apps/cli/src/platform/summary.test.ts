import { describe, expect, it } from 'vitest'
import { REGISTRY } from '../registry/registry-state.ts'
import { summaryText } from './summary.ts'

const states = [{ name: 'everything', state: 'ready', url: 'http://127.9.0.1:8080/mcp', detail: '' }] as const

const summary = (folder: string, detached = true) =>
  summaryText({ states, kubeconfig: `${folder}/kubeconfig`, logFile: `${folder}/platform.log`, cwd: '/home/me', detached })

const facts = { kubeconfig: '/tmp/other/kubeconfig', logFile: '/tmp/other/platform.log', cwd: '/home/me', detached: true }

describe('the summary of a start', () => {
  it('has lines that work as they stand', () => {
    const text = summary('/home/me/.thv')
    expect(text).toContain('  npx thv tools everything\n')
    expect(text).toContain('kubectl --kubeconfig .thv/kubeconfig get mcpservers')
    expect(text).toContain('"npx thv down" stops it.')
  })

  it('names a folder that is not the usual one, wherever thv must know it', () => {
    const text = summary('/tmp/other')
    for (const command of ['tools everything', 'call everything echo message=hello', 'logs everything -f', 'apply -f FILE', 'down'])
      expect(text).toContain(`npx thv ${command} --data-dir /tmp/other`)
    expect(text).toContain('kubectl --kubeconfig /tmp/other/kubeconfig get mcpservers')
  })

  it('shows a tool of the virtual server, where there is one', () => {
    const joined = { ...states[0], name: 'all-in-one' }
    const command = 'npx thv call all-in-one recommend_server task=browser'
    expect(summaryText({ ...facts, states: [...states, joined] })).toContain(`${command} --data-dir /tmp/other`)
    expect(summary('/home/me/.thv')).not.toContain(command)
  })

  it('tells of the registry beside the servers, not among them', () => {
    const registry = { name: REGISTRY, state: 'ready', url: 'http://127.0.0.1:9/registry', detail: '' } as const
    const text = summaryText({ ...facts, states: [...states, registry] })
    expect(text).toContain('Registry of public MCP servers: http://127.0.0.1:9/registry/v0.1/servers\n')
    expect(text).toContain('  npx thv search browser --data-dir /tmp/other ')
    expect(text).not.toContain('"the registry"')
    expect(summary('/home/me/.thv')).not.toMatch(/registry/i)
  })

  it('gives clients a URL they can use', () => {
    const text = summary('/home/me/.thv')
    const [, document = ''] = /^ {2}JSON\n([\s\S]*?)\n\n/m.exec(text) ?? []
    expect(JSON.parse(document)).toEqual({ mcpServers: { everything: { type: 'http', url: 'http://127.9.0.1:8080/mcp' } } })
    const [, added = ''] = /--add-mcp '([^']*)'/.exec(text) ?? []
    expect(JSON.parse(added)).toEqual({ name: 'everything', type: 'http', url: 'http://127.9.0.1:8080/mcp' })
  })

  it('has no line over 100 columns, whatever the names', () => {
    const long = 'n'.repeat(63)
    const url = 'http://127.255.255.255:65535/mcp'
    const failing = { name: 'bad', state: 'failing', detail: 'the image cannot be pulled '.repeat(10) } as const
    const many = [
      { name: `${long}/${long.slice(0, 20)}`, state: 'ready', url, detail: '' } as const,
      { ...states[0], name: long, url },
      failing,
    ]
    const folder = `/home/me/${'deep/'.repeat(12)}data`
    const where = { kubeconfig: `${folder}/kubeconfig`, logFile: `${folder}/platform.log`, cwd: '/', detached: true }
    const text = summaryText({ ...where, states: many })
    expect(text.split('\n').filter((line) => line.length > 100)).toEqual([])
    const [, document = ''] = /^ {2}JSON\n([\s\S]*?)\n\n/m.exec(text) ?? []
    expect(Object.keys(JSON.parse(document).mcpServers)).toHaveLength(2)
    // A command that is broken over two lines is still one command.
    expect(text.replaceAll(/ \\\n */g, ' ')).toContain(`npx thv logs ${long}/${long.slice(0, 20)} -f --data-dir ${folder.slice(1)}`)
  })
})
