"""The functions that take text and are not fed, each by its name, and why no stranger's long text harms there.

A whole class may be named, where all of it does the same (`RunStore.*`), never a whole module: what is written tomorrow
is fed, or excused, by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

# Rooms that no stranger's text comes to.
ROOMS: Mapping[str, str] = {
    "core.testing*": "plays services in tests",
    "core.tools.sandbox.inside*": "runs inside of the sandbox",
    "core.storage.migrations*": "moves rows from one form to another",
    "webui.commands*": "the command line of who starts the house",
    "core.ingesting*": "what `parlour ingest` does: files are read as ever, and their names are passed on",
    "*.__main__": "runs when it is imported",
}

_LISTED: Mapping[str, str] = {
    "passes it on, or compares it, without reading it": """
        core.bridge.pool: Pool.drop
        core.limits: Arrivals.*
        core.judging.cases: case_of add_cases
        core.judging.evaluators: evaluated
        core.messages.marks: set_marks
        core.rag.embedding.across: without_common
        core.observing: Span.*
        core.rag.grown: shelves_at
        core.rag.half_read: last_of
        core.reading.shared: SharedReading.*
        webui.agent_doors.a2a: agent_card _Form.*
        webui.agent_doors.a2a_task: Tasks.*
        webui.agent_doors.answering: answered
        webui.agent_doors.app: AgentDoors.* serve_agent
        webui.sandbox_role.given: GivenHere.*
    """,
    "a header or an address of an HTTP request, or a body of at most 256 KB, read once from front to back": """
        core.mcp.app_addresses: base_of is_safe is_resource about_resource about_server challenge needed_for
        core.mcp.app_clients: Client.* Clients.* back_of
        core.mcp.apps: AskedFor.* Apps.* _Provider.*
        core.tools.sandbox.wire: Doorkeeper.check
        webui.handlers.apps: AppRoutes.*
        webui.middleware.then: page_of
        webui.requests: asked_on_page
    """,
    "values go into statements of fixed form; names are cut to their length": """
        core.storage.app_tokens: AllApps.*
        core.storage.conversations: ConversationStore.* Allowances.* freed_files unneeded thread_of
        core.storage.summaries: SummaryStore.*
        core.storage.conversations: use_files
        core.storage.documents: DocumentStore.*
        core.storage.reading_rows: waiting_of
        core.storage.libraries: LibraryStore.*
        core.storage.lost_libraries: lost_to
        core.storage.files: FileStore.*
        core.storage.folders: FolderStore.* folder_of
        core.storage.ingested: IngestedStore.*
        core.storage.conversation_list: ConversationList.* _Stretch.*
        core.storage.mcp_servers: McpServerStore.*
        core.storage.model_services: ModelServiceStore.*
        core.storage.owner_notes: NoteStore.*
        core.tools.owner_notes: OwnerNotes.*
        core.tools.builtin.storage: OwnerStorage.*
        core.storage.owner_settings: OwnerSettings.* Choices.*
        core.storage.preferences: PreferenceStore.*
        core.storage.queued_messages: QueuedMessages.*
        core.storage.places: Places.*
        core.storage.run_news: RunRequests.*
        core.storage.runs: RunStore.* AllRuns.*
        core.storage.people: PeopleStore.*
        core.storage.groups: GroupStore.*
        core.storage.lending: Lending.* Lent.*
        core.storage.audit: note_act
        core.storage.loans: end_loans service_row
        core.storage.statements: lent_to
        core.storage.use: UseStore.* count_use check_use given_to
        core.storage.moving: move_conversations
        core.storage.second_replies: SecondReplyStore.*
        core.storage.shares: ShareStore.* AllShares.*
        core.storage.blobs: delete_all size_of FolderBlobs.*
        core.storage.carrying_files: digest_of
        core.backup.elsewhere: Elsewhere.*
        core.storage.local_copies: LocalCopies.*
        core.storage.object_blobs: ObjectBlobs.*
        core.storage.signing: signed
        core.storage.whole_conversations: WholeConversations.*
        core.storage.arriving: ArrivingConversations.*
        core.storage.conversations: is_needed
        core.storage.dialects: begins
        core.storage.notes: note_of keep_note forget_notes print_of unfinished
        core.storage.postgres_engine: _WithoutNul.*
        core.storage.api_keys: ApiKey.* ApiKeyStore.* AllApiKeys.* make_room insert_key
        core.storage.api_state: ApiFileStore.* ApiResponseStore.*
        core.rag.search.near_index: count_of
        webui.panels.toolbar: switched
    """,
    "an address that who starts the house gave, or a line of what the database's server says": """
        core.storage.carrying: carry copy_grown
        core.storage.database: Database.open
        core.storage.installation: check_secret
        core.storage.postgres_database: PostgresDatabase.*
        core.storage.postgres_engine: conninfo_of engine_of named
        core.storage.postgres_errors: met_at_work translated unsure
        core.storage.postgres_notices: notices
    """,
    "counts it by a hash of it, whatever its length; an address is the settings' own": """
        core.shared_limits: RedisLimits.* RedisRate.* limits_of
        core.people.shared_tries: SharedTries.*
    """,
    "hands it on to what is fed, or to what is excused itself": """
        core.runs.elsewhere: OwnersElsewhere.*
        core.runs.shared_slots: SharedSlots.*
        core.runs.redis_feed: feed_at
        core.runs.redis_line: RedisLine.*
        core.runs.owner_replies: OwnerReplies.rate
        core.mcp_endpoint: McpAccess.authenticate McpAccess.lets_in OwnerMcpAccess.*
        core.doors.door: Doors.* Door.*
        core.doors.catalog: Catalog.find
        core.doors.storing: store_conversation
        webui.doors.responses: _Kept.*
        core.storage.kept_pages: PagePlace.read
        core.export.bundle: bundled _Bundling.*
        core.export.cited_pages: CitedPages.borne_out
        core.export.exporting: Exporting.archive_name
        core.export.together: zipped
        core.export.shared_turns: SharedTurns.*
        core.importing.own_json: _Turns.*
        core.importing.archive: Archive.*
        core.importing.importing: bring_in
        core.importing.stage: Stage.*
        core.workspace.taking: Taking.*
        core.workspace.joining: Belongings.*
        core.people.people: People.* new_person
        core.people.groups: Groups.*
        core.rag.joined: Lot.* Lots.* JoinedLibrary.* _JoinedPages.* _JoinedTables.* _JoinedContext.*
        core.rag.called: name_here passage_here
        core.agents.named_files: within
        webui.render.many_files: files_html
        core.workspace.lent: LentShelf.*
        core.agents.seeing: Sight.beside
        core.agents.senses: Senses.*
        core.observing: span count record gauge within_run
        core.people.outside: sign_in_outside
        core.people.passwords: Passwords.*
        webui.handlers.people: PeopleRoutes.come_in PeopleRoutes.shown
        core.workspace.demonstrations: Demonstrations.*
        core.reading.attachments: for_model
        core.reading.intake: Intake.take_out take_out
        core.reading.job: read is_known
        core.reading.libraries: Libraries.*
        core.reading.owner_intake: OwnerIntake.*
        core.rag.grown.making: VectorJobs.lacking VectorJobs.standing
        core.reading.preparing: Preparing.go_on
        core.runs.approvals: RunGuard.decide Questions.* Inputs.* with_allowances
        core.agents.title: said_about
        core.runs.beside: Beside.*
        core.runs.history_summary: HistorySummarizer.fit
        core.runs.manager: OwnerRuns.* Runs.launch
        core.runs.said_to_runs: SaidToRuns.*
        core.runs.resumable: Said.stream
        core.workspace.rewriting: rewritten
        core.runs.run: Run.*
        core.models.own_models: OwnerModels.*
        core.models.pool: ModelPool.*
        core.models.remembered: ModelNotes.*
        core.models.usual_model: UsualModel.*
        webui.handlers.models: known_services
        core.toolbox.choices: Rules.change ToolAccounts.* ToolChoices.*
        core.toolbox.server_form: state_of
        core.toolbox.toolbox: OwnerTools.switch is_wanted
        core.toolbox.lent_tools: RunningLent.* BorrowersSessions.* OwnerLentTools.*
        core.toolbox.user_mcp_servers: OwnerMcpServers.* SignIns.* PendingSignIn.ask
        core.toolbox.user_openapi: OwnerOpenApi.*
        core.storage.message_texts: kept_text
        core.export.inspecting: Inspecting.calls
        core.llm.ledger: on_behalf_of
        core.workspace.metering: Metering.with_draft
        core.storage.search: SearchStore.find
        core.workspace.looking: DocumentSearch.find
        core.workspace.conversation: Conversation.*
        core.workspace.dictation: OwnerDictation.*
        core.workspace.comparing: Comparing.*
        core.workspace.queue: ConversationQueue.*
        core.workspace.services: OwnerServices.later Services.shelves
        core.workspace.personas: Personas.*
        core.workspace.addressed: meant
        core.workspace.program: _Guest.stream Program.label Program.path_of named_copy
        core.workspace.prompts: Prompts.*
        core.workspace.assistants: Steered.stream
        core.workspace.steering: OwnerSteering.*
        core.workspace.turn: Turn.stream
        core.bridge.pool: Pool.use
        webui.deletions: Deletions.*
        webui.shared_uploads: SharedUploads.*
        webui.stored_files: stored_file
        core.agents.hub: member_events
        core.agents.mapping: ask_agent
        core.agents.retrieval: Finder.find
        core.rag.counted: counted
        core.rag.rows_told: rows_told whole_question
        core.agents.sync_run: run_events
        core.agents.tool_loop: ToolLoop.reply
        core.agents.tools: AgentTool.call
        core.agents.base: Agent.reply_to
        core.agents.conduct: conducted
        core.agents.handoff: Handoff.take_over
        core.agents.output: TypedOutput.sent_back
        core.runs.stored_session: _Answerer.stream
        core.tools.run_context: RunContext.progress
        core.tools.run_state: RunState.context RunState.before_tool RunState.after_tool RunState.before_reply
        core.agents.compat.parallel_doc_qa: ReadInParts.call
        core.llm.backends.llama_cpp: LlamaCppModel.read_ahead
        core.llm.base: BaseChatModel.quick_chat BaseChatModel.count_tokens
        core.llm.fallback: FallbackModel.*
        core.llm.layers.cache: _Store.keep
        core.llm.layers.call_prompting: native_first
        core.llm.layers.moderation: _Guard.*
        core.llm.oai_surface: chunks
        core.llm.sync_hooks: hooks_stream
        core.llm.wire.reading: ReplyReader.feed
        core.mcp.forms: Caller.elicit
        core.mcp.pool: MCPClient.*
        core.mcp.servers: Servers.* OwnerServers.*
        core.mcp.tools: MCPTool.call ListResources.call ReadResource.call
        core.tools.approval: Guard.decide NestedGuard.decide LoopBoundGuard.decide BothGuards.decide OneQuestion.decide
        core.tools.base: BaseTool.call BaseToolWithFileAccess.call
        core.tools.from_function: FunctionTool.call
        core.tools.openapi.as_tools: ApiTool.call ApiTool.lent
        core.tools.runner: ToolRunner.run call_fingerprint
        core.tools.threads: ToolThreads.run
        webui.handlers.act: act
        webui.handlers.beginning: begin_anew
        webui.handlers.evidence: tried found inside
        webui.handlers.inspecting: inspected
        webui.handlers.hosted: HostedDesk.act
        webui.handlers.queue: queue_up move_queued
        webui.handlers.send: start drop
        webui.handlers.wiring: Handlers.act Handlers.act_and_follow
        webui.middleware.answers: answer refuse replayed
        webui.middleware.entrance: Entrance.ask Entrance.by_program Entrance.refuse
        webui.render.conversation: question_entry
        webui.serving: guarded serve
        core.agents.base: Agent.serve
        webui.terminal: Terminal.opening
        webui.web_ui: WebUI.run
    """,
    "arguments are read by read_arguments, which is fed, and bounded by what they name": """
        core.agents.read_documents: ReadDocuments.call
        core.rag.tables.statement: Statement.* names_in quoted_names taken_apart
        core.tools.builtin.amap_weather: AmapWeather.call
        core.tools.builtin.ask_documents: AskDocuments.call
        core.tools.builtin.ask_tables: AskTables.call
        core.tools.builtin.code_interpreter: CodeInterpreter.call
        core.tools.builtin.doc_parser: SimpleDocParser.call DocParser.call ExtractDocVocabulary.call
        core.tools.builtin.document_search: _DocumentSearch.call Retrieval.call
        core.tools.builtin.image_gen: ImageGen.call Drawer.of Drawer.drawn
        core.tools.builtin.image_zoom_in_tool: ImageZoomInTool.call
        core.tools.builtin.skills: UseSkill.call RunSkill.call Skill.path_of
        core.tools.builtin.web_extractor: WebExtractor.call
        core.tools.builtin.web_search: WebSearch.call ImageSearch.call
        core.tools.openapi.request: request_of
    """,
    "an index in a thread of its own; words are read by terms(), which is fed": """
        core.agents.read_documents: ReadDocuments.is_needed
        core.agents.whole_reading: WholeReader.*
        core.rag.readings: Readings.* RememberedNotes.*
        core.rag.tables.query: _Database.* ask
        core.rag.tables.tables: Tables.*
        core.agents.memory: Memory.find
        core.agents.seeing: Sight.*
        core.rag.figures: Figures.*
        core.rag.library: Library.*
        core.rag.prepared: prepared
        core.rag.figures: Figures.named
        core.rag.context_builder: ContextBuilder.merged
        core.rag.page_content: Contents.get _Reader.get
        core.rag.pages: Pages.content
        core.rag.retriever: Retriever.scored Retriever.holding
        core.rag.search.keyword: KeywordSearcher.* FrontPageSearcher.* nearest_first
        core.rag.search.word_table: WordTable.*
        core.rag.embedded_shelf: EmbeddedShelf.*
        core.rag.grown.shelf: PgShelves.* PgShelf.*
        core.rag.grown.notes: PgNotes.*
        core.rag.grown.vectors: PgVectors.*
        core.rag.grown.words: find find_all scored take_in take_out
        core.rag.grown.listed: WordLists.*
        core.rag.search.vector: VectorSearcher.* HybridSearcher.*
        core.rag.search.word_index: WordIndex.* Snapshot.* WordWriter.*
        core.rag.search.stored_vectors: Vectors.like Vectors.missing MadeVectors.missing
        core.tools.documents: ScratchLibrary.found chunks_as_records source_of
    """,
    "a process of its own, which is ended after its time": """
        core.rag.embedding.local: LocalEmbedder.* Workers.* _Worker.* loaded
        core.doors.embedding: vectors
        core.rag.embedding.service: ServiceEmbedder.*
        core.rag.parsers.archives: package
        core.rag.parsers.process: figure
        core.rag.parsers.pdf_figures: with_words
        core.rag.parsers.word_forms: control_text older_text
        core.rag.parsers.archive: ArchiveParser.parse
        core.rag.parsers.compound: compound stream_of
        core.rag.parsers.data_text: DataTextParser.parse
        core.rag.parsers.epub: BookParser.parse
        core.rag.parsers.mail: MailParser.parse OutlookParser.parse
        core.rag.parsers.ocr: recognise
        core.rag.parsers.opendocument: OpenDocumentParser.parse
        core.rag.parsers.pdf: PdfParser.parse
        core.rag.parsers.table_rows: TableRowsParser.parse
        core.rag.parsers.transcript: TranscriptParser.parse
        core.rag.parsers.pdf_page: highlighted
        core.rag.parsers.picture: PictureParser.parse
        core.rag.parsers.process: parse stream picture figure unlock
        core.rag.parsers.word_forms: control_text older_text
        core.rag.parsers.rich_text: RichTextParser.parse
        core.rag.parsers.slides: SlidesParser.parse
        core.rag.parsers.slides97: Slides97Parser.parse
        core.rag.parsers.spreadsheet: WorkbookParser.parse SheetParser.parse
        core.rag.parsers.text: PlainParser.parse
        core.rag.parsers.verbatim: LinesParser.parse GridParser.parse
        core.rag.parsers.web_page: WebPageParser.parse page_blocks
        core.rag.parsers.word: WordParser.parse
        core.rag.parsers.word97: Word97Parser.parse
        core.rag.rerank: ServiceReranker.*
        core.tools.sandbox.box: Box.put spec
        core.tools.sandbox.bpf: syscall_filter
        core.tools.sandbox.bubblewrap: Bubblewrap.launch
        core.tools.sandbox.docker: Docker.launch
        core.tools.sandbox.kernel: Channels.* Kernel.run
        core.tools.sandbox.kernels: Kernels.run run_here
        core.tools.sandbox.landlock: Landlock.launch
        core.tools.sandbox.process: SandboxProcess.open_place
        core.tools.sandbox.self_test: choose
        core.tools.sandbox.work_folder: WorkFolder.put
        core.tools.web.main_text_worker: main_text
        core.tools.web.reading: main_text
        core.llm.backends.whisper_worker: heard
        core.mcp.stdio: _Pipe.send process_transport started
        core.rag.printing: _Paper.* as_pdf main
    """,
    "bytes of a connection, as many at once as one gives": """
        core.llm.backends.dashscope.media: with_uploads
        core.llm.backends.dashscope.service: DashScopeService.ask in_time
        core.llm.backends.native.service: NativeService.*
        core.llm.backends.moderation: ModerationService.look
        core.llm.backends.network: Connection.* Network.*
        core.llm.backends.openai.service: listed_models offered_models
        core.llm.heard_parts: HeardParts.* mark_of
        core.llm.transcription: Transcriber.*
        core.net.addresses: system_addresses
        core.net.body: Body.feed
        core.net.fetcher: fetch body_of
        core.net.service: ask
        core.rag.sources: page
        core.tools.openapi.credentials: Tokens.filled_in
        core.tools.openapi.document: fetched_text
        core.tools.web.base: answer_of asked object_of refusal
        core.tools.web.passages: given
        core.tools.web.reading: read
        webui.bundles: packed
        webui.doors.socket: _Answer.* _Turn.*
        webui.doors.stream: _Buffer.*
        webui.sandbox_role.app: _Said.*
        webui.server: Joined.* PatientProtocol.*
        webui.uploads: Incoming.* Uploads.receive Uploads.progress
    """,
    "settings of who starts the house or writes the program, and names of the house": """
        core.export.traces: trace_to
        core.complaints: unheard
        core.plain_calls: telling_fields
        core.plain_models: ValidationError.of
        core.plain_names: wrong_names
        webui.frames: asking_of
        webui.views: View.cover
        core.agents.base: Agent.from_config Agent.session Agent.check_options
        core.agents.handoff: handoff
        core.agents.session: session_of
        core.agents.compat.group_chat_creator: GroupChatCreator.group
        core.agents.config.build: agent_from problems_in
        core.agents.config.problems: problem
        core.agents.config.schema: AgentConfig.of
        core.agents.file_library: FileLibrary.* read_files
        core.agents.senses: Senses.*
        core.backup.problems: problem
        core.errors: need_packages
        core.judging.checks: Judge.judged
        core.judging.problems: suite_problem within
        core.judging.run: evaluate aevaluate
        core.judging.run_folder: Runs.*
        core.judging.suite: Suite.* section
        core.llm.backends.errors: Translator.make Translator.make_refusal
        core.llm.backends.openai.service: Heads.* default_key
        core.llm.backends.transformers.load: fetched_folder progress_bar
        core.llm.backends.transformers.model: TransformersEngine.count_tokens TransformersModel.count_tokens
        core.llm.backends.transformers.writing: Writing.count_tokens _Writer.say
        core.llm.backends.zerogpu.hardware: asking_for on_gpu
        core.llm.backends.zerogpu.model: ZeroGpuEngine.count_tokens
        core.llm.visitors: came
        core.llm.gguf: _Head.number
        core.llm.media: check_pixels subtype_of refused
        core.llm.picture_tokens: picture_tokens
        core.llm.reply_store: cache_key
        core.llm.telemetry: begin_trace
        core.llm.tokens: Vocabulary.* shortened
        core.export.zip_stream: ZipStream.*
        core.importing.problems: problem
        core.llm.usage: cost_of cost_of_sound is_priced listed
        core.llm.hub_record: recorded
        core.llm.weights: main
        core.models.weight_files: WeightFiles.*
        core.mcp.sign_in: SignIn.tokens
        core.rag.parsers.base: is_ideograph
        core.rag.sources: file_here
        core.registry: Registry.*
        core.storage.data_folder: put_restored
        core.storage.files: media_type_of
        core.tools.catalog: ToolRegistry.made
        core.tools.given_files: picture_item
        webui.auth: PageToken.*
        webui.bundles: joined_script
        webui.page_files: front_end_file
        webui.render.markup: note_index
        webui.server: address_of bind
        webui.words: Words.*
    """,
    "made of what is fed: block_text() of a table, turn() of each turn, html() of each text in it": """
        core.export.html_page: HtmlWriter.turns
        core.export.markdown: MarkdownWriter.turns
        core.export.sharing: _Making.turns
        core.tools.documents: table_text
    """,
    "what scope_of, which is fed, has cut, with single blanks": """
        core.rag.scope: understood judged by_rules signs_in is_sure
        core.rag.scope_part: part_in heading_in other_part_in simplified
        core.rag.scope_weights: weighed words_in checksum
    """,
    "documents as they were read, which are bounded": """
        core.rag.tables.shape: column_names
        core.rag.tables.values: readings
        core.tools.openapi.as_tools: tools_of
        core.tools.openapi.credentials: Keys.* clients_of checkable auth_schemes
        core.tools.openapi.operations: operations
    """,
    "a model is asked, whose answer is fed where it comes": """
        core.agents.compat.articles: ended
        core.agents.search_query: KeywordQuery.searched standalone_question
        core.agents.summarize: summarize transcript_pieces
        core.llm.calling.call_text: call_events
    """,
    "escaped, nothing else, which escaped() is fed for": """
        webui.panels.approval: form_html
        webui.panels.evidence_page: paper
        webui.panels.dictation: choice_html
        webui.panels.sign_in: link_page not_allowed_page
        webui.panels.history: history_html rows_html
        webui.panels.model_menu: choices_data
        webui.panels.inspector: inspector_html
        webui.panels.model_services: services_data
        webui.panels.models: menu_data
        webui.panels.tools: account_data allowed_data tools_data
        webui.panels.top: status_html top_html
        webui.render.comparing: column
        webui.render.documents: document_card in_stead
    """,
}


def _read(listed: Mapping[str, str]) -> dict[str, str]:
    excused: dict[str, str] = {}
    for reason, lines in listed.items():
        for line in filter(None, map(str.strip, lines.splitlines())):
            module, _, names = line.partition(": ")
            excused |= {f"{module}:{name}": reason for name in names.split()}
    return excused


EXCUSED: Mapping[str, str] = _read(_LISTED)
"""Functions by "module:name" or "module:Class.*", with the reason."""


def is_excused(path: str) -> bool:
    """Whether the function of this name is not fed."""
    return path in EXCUSED or f"{path.rpartition('.')[0]}.*" in EXCUSED


def is_shut(module: str) -> bool:
    """Whether no stranger's text comes to a module."""
    return any(fnmatchcase(module, room) for room in ROOMS)
