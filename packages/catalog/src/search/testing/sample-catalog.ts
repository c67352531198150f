import type { CatalogEntry } from '../../catalog-entry.ts'

/** Invented servers of the kinds that real catalogs hold: name | title | description | tags | tools. */
const SERVERS = `
io.github.bluequery/postgres-mcp | PostgreSQL | Run read-only SQL and inspect schemas of a PostgreSQL database | database sql postgres | query list_tables describe_table explain_plan
io.github.bluequery/mysql-mcp | MySQL | Query MySQL and MariaDB databases with row limits | database sql mysql mariadb | query list_tables describe_table
com.quackworks/duckdb | DuckDB Analytics | Analyse Parquet and CSV files with DuckDB SQL | database analytics parquet csv | run_query load_file summarize
io.github.leafdocs/mongodb-explorer | MongoDB Explorer | Find, aggregate and index documents in MongoDB collections | database nosql documents | find aggregate list_collections create_index
dev.fastkeys/redis | Redis | Read and write keys, streams and hashes of a Redis server | cache database key-value | get set hash_get stream_read
io.github.tinystore/sqlite-server | SQLite | Open a local SQLite file, run queries and build reports | database sql local | read_query write_query create_table
com.frostlake/warehouse | Frostlake Warehouse | Ask questions of your cloud data warehouse in SQL | database warehouse analytics | execute_sql list_warehouses
io.github.vectorhaus/embeddings-store | Vector Store | Store embeddings and run similarity search over them | vector embeddings rag | upsert similarity_search delete_vectors
com.octoforge/repos | OctoForge Repositories | Repositories, pull requests, issues and code review on OctoForge | git code review | create_pull_request list_issues merge_branch search_code
io.github.gitbench/git-local | Local Git | Status, diff, commit and branch in a git working copy | git vcs local | git_status git_diff git_commit git_log
com.tanukilab/gitlab-bridge | GitLab Bridge | Merge requests, pipelines and issues of GitLab projects | git gitlab code review ci | create_merge_request list_pipelines list_issues
com.github.tools/github | GitHub | Manage GitHub repositories, issues, pull requests and actions | git github code review | create_issue create_pull_request search_repositories
com.ticketry/tracker | Ticketry Tracker | Create and search issues, sprints and boards in Ticketry | issues agile project-management | create_issue search_issues move_to_sprint
app.linearis/linear-tasks | Linearis Tasks | Plan cycles, projects and issues in Linearis | issues project-management planning | create_task list_cycles assign_task
io.github.kanbanist/boards | Kanban Boards | Cards, lists and members on kanban boards | kanban project-management tasks | add_card move_card list_boards
com.slackline/slack | Slack | Read channels, post messages and search conversations in Slack | chat messaging team | post_message list_channels search_messages
com.discordia/discord-bot | Discord Bot | Send messages and moderate channels of a Discord guild | chat messaging community | send_message list_channels ban_member
org.matrixkit/matrix-rooms | Matrix Rooms | Join rooms and exchange encrypted messages over Matrix | chat messaging encrypted | join_room send_event
com.teamwork365/teams | Teams Chat | Chats, channels and meetings of a Teams tenant | chat meetings messaging | send_chat create_meeting
io.github.mailfold/imap-mail | Mail over IMAP | Search folders, read and draft e-mail over IMAP and SMTP | email imap smtp | search_mail read_message draft_reply
com.gmailer/gmail | Gmail | Search, label and send Gmail messages | email google | send_email search_threads add_label
io.github.mailfold/newsletter | Newsletter Sender | Build and schedule newsletters to subscriber lists | email marketing | create_campaign schedule_send
com.calends/google-calendar | Google Calendar | List, create and move events in Google Calendar | calendar scheduling google | create_event list_events find_free_time
io.github.davtools/caldav | CalDAV Calendar | Events and reminders on any CalDAV calendar server | calendar scheduling reminders | create_event list_calendars
com.meetfinder/scheduler | Meeting Scheduler | Find a meeting time that suits everybody and send invitations | scheduling meetings | propose_times send_invitation
io.github.toolbench/filesystem | Filesystem | Read, write and search files inside allowed directories | files local | read_file write_file list_directory search_files
com.gdrivers/google-drive | Google Drive | Find, read and share documents in Google Drive | files google cloud-storage | search_files read_document share_file
com.boxup/dropboxer | Cloud Box | Upload, download and share files in Cloud Box folders | files cloud-storage | upload_file download_file create_link
com.cloudnine/s3-buckets | S3 Buckets | List buckets, read and write objects of S3 compatible storage | aws object-storage files | list_buckets get_object put_object
io.github.webgrab/fetch | Fetch | Fetch a web page and turn it into markdown | web http scraping | fetch_url
io.github.webgrab/crawler | Site Crawler | Crawl a website and extract structured data from its pages | web scraping crawling | crawl_site extract_data
com.stagehands/browser-automation | Browser Automation | Drive a real browser: navigate, click, fill forms, take screenshots | browser automation testing | navigate click fill_form take_screenshot
io.github.playwrights/playwright | Playwright | Browser tests and automation through the accessibility tree | browser automation testing | browser_navigate browser_click browser_snapshot
com.bravesearch/web-search | Web Search | Search the web, news and images with a private index | web search news | web_search news_search image_search
org.searxlings/metasearch | Metasearch | Ask many search engines at once and merge the results | web search privacy | search
org.wikireader/wikipedia | Wikipedia | Search and read Wikipedia articles and summaries | knowledge encyclopedia | search_articles get_summary
org.arxivist/papers | Research Papers | Search arXiv, download and summarise scientific papers | research science papers | search_papers download_paper
com.skycast/weather | Weather | Forecasts, alerts and current weather for any place | weather forecast climate | get_forecast get_alerts
io.github.rainradar/radar-maps | Rain Radar | Radar images and precipitation warnings | weather radar maps | get_radar_image
com.mapwise/maps | Maps and Directions | Geocode addresses, plan routes and find places on maps | maps geocoding routing | geocode directions search_places
io.github.kubecrew/kubernetes | Kubernetes | Inspect pods, deployments, logs and events of Kubernetes clusters | kubernetes containers devops | list_pods get_logs scale_deployment apply_manifest
io.github.kubecrew/helm-charts | Helm Charts | Search, template and install Helm charts | kubernetes helm devops | search_charts install_chart
io.github.whalework/docker | Docker | Build images and manage containers, volumes and networks with Docker | docker containers devops | list_containers build_image run_container
com.hashplan/terraform | Terraform | Look up providers and modules, plan and explain Terraform code | infrastructure iac devops | plan search_modules explain_resource
com.cloudnine/aws-docs | AWS Documentation | Search and read the documentation of AWS services | aws documentation cloud | search_documentation read_documentation
com.cloudnine/cost-explorer | Cloud Cost Explorer | Explain the cloud bill and find savings | aws cost cloud finops | get_cost_report find_savings
com.azurite/azure-resources | Azure Resources | Resource groups, storage and functions of an Azure subscription | azure cloud | list_resources query_logs
io.github.promwatch/prometheus | Prometheus | Run PromQL queries and explore metrics and alerts | metrics monitoring observability | query_range list_metrics list_alerts
com.graphana/dashboards | Dashboards | Search dashboards, render panels and annotate incidents | monitoring dashboards observability | search_dashboards render_panel
com.sentinelly/error-tracking | Error Tracking | Group exceptions, read stack traces and resolve errors | errors monitoring debugging | list_errors get_stacktrace resolve_error
com.pagerly/on-call | On-Call | Who is on call, open incidents and escalations | incidents on-call operations | list_incidents acknowledge page_user
com.stripely/payments | Stripely Payments | Customers, invoices, refunds and payment links | payments billing finance | create_invoice refund_payment list_customers
com.paybridge/paypal-orders | PayPal Orders | Create orders, capture payments and handle disputes with PayPal | payments finance | create_order capture_payment
com.ledgerly/bookkeeping | Bookkeeping | Accounts, ledgers and tax reports for small firms | accounting finance tax | post_entry trial_balance
com.tickerboard/stock-quotes | Stock Quotes | Share prices, company fundamentals and market news | finance stocks market-data | get_quote get_fundamentals
com.notionary/notion-pages | Notion Pages | Search, read and edit pages and databases in Notion | notes wiki documents | search_pages append_block query_database
md.obsidiana/vault | Obsidian Vault | Read, link and search the notes of a markdown vault | notes markdown knowledge | read_note search_notes create_note
com.confluencia/wiki | Team Wiki | Search and write pages of the team wiki | wiki documentation knowledge | search_wiki update_page
io.github.remembrall/memory-graph | Memory Graph | Long-term memory for agents as a knowledge graph | memory knowledge-graph agents | create_entities add_relation search_nodes
io.github.thinksteps/sequential-thinking | Sequential Thinking | Break a problem into steps and revise them | reasoning planning agents | next_thought
io.github.clockwork/time | Time | Current time and conversion between time zones | time timezone | get_current_time convert_time
com.pixelforge/image-generator | Image Generator | Generate and edit pictures from a description | images ai generation | generate_image edit_image
com.voicery/text-to-speech | Text to Speech | Turn text into natural speech in forty languages | audio speech tts | synthesize list_voices
com.voicery/transcribe | Transcription | Transcribe audio and video recordings with speakers | audio speech transcription | transcribe_file
com.linguala/translator | Translator | Translate text and documents between languages | translation languages | translate detect_language
com.figmatic/design-files | Design Files | Read frames, components and styles of design files | design ui figma | get_file get_component export_assets
com.tubewatch/video-transcripts | Video Transcripts | Fetch transcripts and chapters of online videos | video youtube transcripts | get_transcript search_videos
fm.playlistr/music | Music Player | Search tracks, control playback and build playlists | music audio playlists | play pause create_playlist
io.github.homehub/home-assistant | Home Assistant | Lights, heating and sensors of a smart home | smart-home iot automation | turn_on set_temperature list_sensors
com.vaultkeep/secrets | Secrets Vault | Read, rotate and audit secrets and certificates | secrets security certificates | read_secret rotate_secret
io.github.scanwise/vulnerability-scanner | Vulnerability Scanner | Scan dependencies and images for known vulnerabilities | security sbom cve | scan_image scan_dependencies
io.github.codehound/semgrep-rules | Static Analysis | Find bugs and insecure patterns in source code | security code analysis | scan_code list_rules
com.salesnorth/crm | CRM | Contacts, leads and deals of the sales team | crm sales contacts | search_contacts update_deal
com.hubspoke/marketing | Marketing Hub | Campaigns, contacts and forms for marketing teams | marketing crm contacts | list_campaigns create_contact
com.shopfront/storefront | Online Shop | Products, stock and orders of an online shop | ecommerce products orders | list_products update_stock list_orders
com.flagpole/feature-flags | Feature Flags | Turn features on and off and target audiences | feature-flags releases | toggle_flag list_flags
io.github.pdfpress/pdf-tools | PDF Tools | Extract text, merge and split PDF files | pdf documents files | extract_text merge_pdf split_pdf
com.sheetwise/spreadsheets | Spreadsheets | Read ranges, write cells and make charts in spreadsheets | spreadsheets excel office | read_range write_cells add_chart
`

export const sampleCatalog: readonly CatalogEntry[] = SERVERS.trim().split('\n').map(entryOf)

function entryOf(line: string): CatalogEntry {
  const [name = '', title = '', description = '', tags = '', tools = ''] = line.split(' | ')
  const version = '1.0.0'
  const at = '2026-01-01T00:00:00Z'
  const extensions = { status: 'active', tags: tags.split(' '), tools: tools.split(' ') }
  const document = {
    name,
    title,
    description,
    version,
    _meta: { 'io.modelcontextprotocol.registry/publisher-provided': { 'org.example': { main: extensions } } },
  }
  return { name, version, document, status: 'active', publishedAt: at, updatedAt: at, statusChangedAt: at, source: 'sample' }
}
