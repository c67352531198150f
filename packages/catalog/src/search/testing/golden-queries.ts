/**
 * Servers that a person would expect among the first three; the first of the list at the very first place, unless the query names a
 * category of which no member comes before the others. Fewer than three are named where the catalog has no third that fits.
 */
export interface GoldenQuery {
  readonly query: string
  readonly typo?: true
  readonly category?: true
  /** The parts after the slash. */
  readonly expected: readonly [string, ...string[]]
}

export const goldenQueries: readonly GoldenQuery[] = [
  { query: 'postgres', expected: ['postgres-mcp'] },
  { query: 'sql database', category: true, expected: ['sqlite-server', 'postgres-mcp', 'mysql-mcp'] },
  { query: 'github', expected: ['github'] },
  { query: 'git', expected: ['git-local'] },
  { query: 'create issue', expected: ['github', 'tracker'] },
  { query: 'pull request', expected: ['github', 'repos'] },
  { query: 'merge request pipelines', expected: ['gitlab-bridge'] },
  { query: 'chat messages', expected: ['teams', 'discord-bot'] },
  { query: 'slack', expected: ['slack'] },
  { query: 'send email', expected: ['gmail', 'imap-mail'] },
  { query: 'calendar', expected: ['google-calendar', 'caldav'] },
  { query: 'google', category: true, expected: ['google-calendar', 'google-drive', 'gmail'] },
  { query: 'find a free time for a meeting', expected: ['scheduler', 'google-calendar'] },
  { query: 'read files', expected: ['filesystem', 'google-drive'] },
  { query: 'web search', expected: ['web-search', 'metasearch'] },
  { query: 'fetch web page', expected: ['fetch'] },
  { query: 'browser', expected: ['browser-automation', 'playwright'] },
  { query: 'take screenshot', expected: ['browser-automation'] },
  { query: 'weather', expected: ['weather', 'radar-maps'] },
  { query: 'kubernetes', expected: ['kubernetes', 'helm-charts'] },
  { query: 'pod logs', expected: ['kubernetes'] },
  { query: 'containers', expected: ['docker', 'kubernetes'] },
  { query: 'aws', category: true, expected: ['aws-docs', 's3-buckets', 'cost-explorer'] },
  { query: 'monitoring', category: true, expected: ['prometheus', 'dashboards', 'error-tracking'] },
  { query: 'payments', expected: ['payments', 'paypal-orders'] },
  { query: 'notes', expected: ['vault', 'notion-pages'] },
  { query: 'speech', expected: ['text-to-speech', 'transcribe'] },
  { query: 'security', category: true, expected: ['secrets', 'vulnerability-scanner', 'semgrep-rules'] },
  { query: 'play', expected: ['music', 'playwright'] },
  { query: 'kube', expected: ['kubernetes', 'helm-charts'] },
  { query: 'timezone', expected: ['time'] },
  { query: 'postgresql', expected: ['postgres-mcp'] },
  { query: 'postgers', typo: true, expected: ['postgres-mcp'] },
  { query: 'kuberntes', typo: true, expected: ['kubernetes', 'helm-charts'] },
  { query: 'githbu', typo: true, expected: ['github'] },
  { query: 'calender', typo: true, expected: ['google-calendar', 'caldav'] },
  { query: 'wether forcast', typo: true, expected: ['weather'] },
  { query: 'brower automation', typo: true, expected: ['browser-automation', 'playwright'] },
  { query: 'slakc', typo: true, expected: ['slack'] },
  { query: 'transalte', typo: true, expected: ['translator'] },
  { query: 'spreadsheat', typo: true, expected: ['spreadsheets'] },
  { query: 'vulnerabilty scaner', typo: true, expected: ['vulnerability-scanner'] },
]
