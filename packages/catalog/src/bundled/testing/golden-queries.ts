/**
 * Results that a person who knows the bundled catalog expects of a search, written down before the search was asked. Names are the parts after
 * the slash. `first` is at the first place; all of `among` are within the first three, in any order; `only` says that the first three are
 * all of these: for words that fit more than three servers equally.
 */
export interface GoldenQuery {
  readonly query: string
  readonly typo?: true
  readonly first?: string
  readonly among?: readonly string[]
  readonly only?: readonly string[]
}

const ATLASSIAN = ['mcp-atlassian', 'atlassian-mcp-server']
const WEB_SEARCH = [
  'brave-search-mcp-server',
  'tavily-mcp',
  'exa-mcp-server',
  'mcp-server',
  'duckduckgo-mcp-server',
  'firecrawl-mcp-server',
]

export const goldenQueries: readonly GoldenQuery[] = [
  { query: 'browser', among: ['playwright-mcp', 'chrome-devtools-mcp', 'mcp-server-browserbase'] },
  { query: 'playwright', first: 'playwright-mcp' },
  { query: 'web search', only: WEB_SEARCH },
  { query: 'github', first: 'github-mcp-server' },
  { query: 'pull requests', first: 'github-mcp-server' },
  { query: 'create issue', only: ['linear', 'github-mcp-server', ...ATLASSIAN] },
  { query: 'jira', among: ATLASSIAN },
  { query: 'confluence', among: ATLASSIAN },
  { query: 'sql', first: 'mcp' },
  { query: 'postgres', among: ['mcp', 'heroku-mcp-server'] },
  { query: 'vector database', among: ['mcp-server-qdrant', 'chroma-mcp'] },
  { query: 'memory', first: 'server-memory', among: ['mcp-server-qdrant'] },
  { query: 'read files', first: 'server-filesystem' },
  { query: 'time zone', first: 'server-time' },
  { query: 'fetch a web page', first: 'server-fetch' },
  { query: 'scraping', among: ['firecrawl-mcp-server', 'apify-mcp-server'] },
  { query: 'payments', first: 'stripe-mcp' },
  { query: 'invoice', first: 'stripe-mcp' },
  { query: 'kubernetes', first: 'kubernetes-mcp-server' },
  { query: 'pod logs', first: 'kubernetes-mcp-server' },
  { query: 'helm', first: 'kubernetes-mcp-server' },
  { query: 'feature flags', first: 'mcp-server' },
  { query: 'flaky tests', first: 'mcp-server-circleci' },
  { query: 'errors monitoring', first: 'sentry-mcp' },
  { query: 'dashboards', first: 'mcp-grafana' },
  { query: 'prometheus', first: 'mcp-grafana' },
  { query: 'design', first: 'Figma-Context-MCP' },
  { query: 'maps directions', first: 'mcp-server' },
  { query: 'research papers', first: 'arxiv-mcp-server' },
  { query: 'documentation', only: ['context7', 'aws-documentation-mcp-server', 'mcp-server-cloudflare', 'stripe-mcp'] },
  { query: 'aws', first: 'aws-documentation-mcp-server' },
  { query: 'azure', first: 'azure' },
  { query: 'cloudflare', first: 'mcp-server-cloudflare' },
  { query: 'nosql', first: 'mongodb-mcp-server' },
  { query: 'redis', first: 'mcp-redis' },
  { query: 'notes', first: 'notion-mcp-server' },
  { query: 'wiki', only: ['notion-mcp-server', ...ATLASSIAN] },
  { query: 'authentication', first: 'mcp' },
  { query: 'hugging face models', first: 'hf-mcp-server' },
  { query: 'deploy', among: ['heroku-mcp-server'] },
  { query: 'git commit', first: 'server-git' },
  { query: 'project management', among: ['linear', ...ATLASSIAN] },
  { query: 'convert_time', first: 'server-time' },
  { query: 'playwrihgt', typo: true, first: 'playwright-mcp' },
  { query: 'kubernets', typo: true, first: 'kubernetes-mcp-server' },
  { query: 'githbu', typo: true, first: 'github-mcp-server' },
  { query: 'elasticsaerch', typo: true, first: 'mcp-server-elasticsearch' },
  { query: 'grafanna', typo: true, first: 'mcp-grafana' },
  { query: 'figam', typo: true, first: 'Figma-Context-MCP' },
  { query: 'striep payments', typo: true, first: 'stripe-mcp' },
  { query: 'mongdb', typo: true, first: 'mongodb-mcp-server' },
  { query: 'documentaton aws', typo: true, first: 'aws-documentation-mcp-server' },
  { query: 'browsr', typo: true, among: ['playwright-mcp', 'chrome-devtools-mcp', 'mcp-server-browserbase'] },
  { query: 'confluense', typo: true, among: ATLASSIAN },
  { query: 'notoin', typo: true, first: 'notion-mcp-server' },
]
