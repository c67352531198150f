import { describe, expect, it } from 'vitest'
import type { Route, View } from '../aggregate/aggregate.ts'
import { NO_COMPOSITES } from '../compose/composite-offers.ts'
import { searchQuery } from './search-query.ts'
import { searchTools } from './search-tools.ts'
import { buildToolIndex } from './tool-index.ts'

const TOOLS: Readonly<Record<string, string>> = {
  github_create_issue: 'Create a new issue in a GitHub repository.',
  github_listPullRequests: 'Lists the pull requests of a repository.',
  github_get_file_contents: 'Reads a file or directory of a repository.',
  slack_post_message: 'Sends a message to a channel.',
  slack_list_channels: 'Lists the channels of a workspace.',
  db_query: 'Runs a read-only SQL statement.',
  weather_forecast: 'Tells the temperature and the rain of the next days.',
}

function viewOf(tools: Readonly<Record<string, string>>): View {
  const routes = Object.entries(tools).map(([key, description]): [string, Route] => {
    const [backend = '', ...rest] = key.split('_')
    return [key, { key, backend, original: rest.join('_'), item: { name: key, description, inputSchema: { type: 'object' } } }]
  })
  const none = new Map<string, Route>()
  return { tools: new Map(routes), hiddenTools: none, prompts: none, resources: none, resourceTemplates: none, conflicts: [] }
}

describe('the index of tools', () => {
  it.each([
    ['create an issue in a repository', [], 'github_create_issue'],
    ['I am creating issues for bugs, which tool can I use?', [], 'github_create_issue'],
    ['which pull requests are open', [], 'github_listPullRequests'],
    ['sending a messsage to my team', ['slack'], 'slack_post_message'],
    ['will it be raining tomorrow', ['weather'], 'weather_forecast'],
    ['run sql', [], 'db_query'],
    ['db_query', [], 'db_query'],
  ])('finds a tool for: %s', async (description, keywords, expected) => {
    const { search, items } = await buildToolIndex({ view: viewOf(TOOLS), composites: NO_COMPOSITES })
    const { hits } = search(searchQuery(description, keywords))
    expect(items[hits[0]?.document ?? -1]?.['name']).toBe(expected)
  })

  it('gives further tools when the first ones are excluded, until there are none', async () => {
    const tools = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`a_tool_${i}`, 'Copies a file.']))
    const { search, items } = await buildToolIndex({ view: viewOf(tools), composites: NO_COMPOSITES })
    const seen = new Set<number>()
    for (let round = 0; round < 3; round++)
      for (const { document } of search('copy file', { limit: 100, exclude: seen }).hits) seen.add(document)
    expect(seen.size).toBe(items.length)
    expect(search('copy file', { limit: 100, exclude: seen }).hits).toEqual([])
  })

  it.each(['', '   ', '???', '\u0000', '\ud800', 'a'.repeat(1_000_000)])('takes any text as a query', async (description) => {
    const { search } = await buildToolIndex({ view: viewOf(TOOLS), composites: NO_COMPOSITES })
    expect(search(searchQuery(description, [description])).hits.length).toBeLessThanOrEqual(10)
  })

  it('names the backends in the description of find_tool, within a limit', () => {
    const of = (backends: readonly string[]) => String(searchTools({ maxToolsToReturn: 8, alwaysListed: [] }, backends)[1]?.['description'])
    expect(of(['github', 'slack'])).toMatch(/ github, slack\.$/)
    expect(of([])).not.toContain('come from')
    const many = of(Array.from({ length: 1_000 }, (_, i) => `backend-${i}`))
    expect(many.length).toBeLessThan(1_500)
    expect(many).toMatch(/ and \d+ more\.$/)
  })
})
