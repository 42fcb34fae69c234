//! The protocol's server: what clients may ask, answered by tools and resources.

use crate::desk::{Desk, Own, Progress};
use crate::host::{Client, Host};
use crate::resources::{self, Address};
use crate::tools;
use crate::trouble::Trouble;
use crate::watch::{Follow, FollowSessions};
use rmcp::model::*;
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Subscriptions of one client: each is a question that waits at the host.
const SUBSCRIPTIONS_MAX: usize = 32;

/// Instructions for agents.
const INSTRUCTIONS: &str = "Holdfast keeps live terminal sessions that people and agents share. `run_command` \
        executes commands in your own shell, which keeps its state; a command that takes longer keeps running, and \
        `wait_for` continues from there. If you lost your memory, call `overview` first: it shows sessions, runs, \
        ports and open questions. Open a separate session for a server (`open_session`) and wait for its port. One \
        actor types at a time: on `turn_held`, request the turn and wait. Never type passwords: use `ask_human`.";

/// One client's connection, whatever carries it.
pub struct Service<H> {
    host: H,
    own: Arc<Own>,
    follows: Arc<Follows>,
    _end: DropGuard,
}

/// What is followed for a client that subscribed.
#[derive(Debug, Default)]
struct Follows {
    resources: Mutex<HashMap<String, CancellationToken>>,
    sessions: AtomicBool,
    end: CancellationToken,
}

/// A server for one client.
pub fn service<H: Host>(host: H) -> Service<H> {
    let end = CancellationToken::new();
    let follows = Follows { end: end.clone(), ..Follows::default() };
    Service { host, own: Arc::default(), follows: Arc::new(follows), _end: end.drop_guard() }
}

impl<H: Host> Service<H> {
    /// The host in the name of who sent the request, who is introduced first.
    fn host(&self, context: &RequestContext<RoleServer>) -> Result<H, Trouble> {
        let host = self.host.of(&context.extensions)?;
        if let Some(client) = context.client_info() {
            host.meet(&Client { name: client.name, version: client.version });
        }
        Ok(host)
    }

    /// Tells the client when sessions come and go, from the first time on that it asked for them.
    fn follow_sessions(&self, host: H, peer: Peer<RoleServer>) {
        if self.follows.sessions.swap(true, Ordering::Relaxed) {
            return;
        }
        let end = self.follows.end.clone();
        tokio::spawn(end.run_until_cancelled_owned(async move {
            let mut sessions = FollowSessions::new(&host);
            loop {
                sessions.changed().await;
                if peer.notify_resource_list_changed().await.is_err() {
                    return;
                }
            }
        }));
    }

    async fn follow(&self, host: H, uri: String, peer: Peer<RoleServer>) -> Result<(), Trouble> {
        let address = address(&uri)?;
        let mut follow = Follow::new(&host, &address).await?;
        let stop = self.follows.end.child_token();
        {
            let mut resources = self.follows.resources.lock().unwrap_or_else(PoisonError::into_inner);
            if resources.len() >= SUBSCRIPTIONS_MAX && !resources.contains_key(&uri) {
                let message = format!("at most {SUBSCRIPTIONS_MAX} subscriptions");
                return Err(Trouble::new("too_many", message).hint("Unsubscribe from some."));
            }
            if let Some(before) = resources.insert(uri.clone(), stop.clone()) {
                before.cancel();
            }
        }
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            loop {
                let goes_on = follow.changed().await;
                let sent = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri.clone())).await;
                if sent.is_err() || !goes_on {
                    return;
                }
            }
        }));
        Ok(())
    }
}

/// Reads an address, or says what addresses look like.
fn address(uri: &str) -> Result<Address, Trouble> {
    Address::of(uri).ok_or_else(|| {
        Trouble::new("not_found", format!("no resource {uri:?}"))
            .hint("Resources are session://NAME/screen, session://NAME/log, session://NAME/graph and run://RUN.")
    })
}

/// A failure outside of tools, where an error is the protocol's.
fn failed(trouble: &Trouble) -> ErrorData {
    let data = serde_json::to_value(trouble).ok();
    match trouble.code.as_str() {
        "not_found" | "ambiguous" => ErrorData::resource_not_found(trouble.message.clone(), data),
        "bad_request" | "too_many" => ErrorData::invalid_params(trouble.message.clone(), data),
        _ => ErrorData::internal_error(trouble.message.clone(), data),
    }
}

impl<H: Host> ServerHandler for Service<H> {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_completions()
            .build();
        let me = Implementation::new("holdfast", env!("CARGO_PKG_VERSION"))
            .with_title("Holdfast")
            .with_description("Live terminal sessions that people and agents share");
        let elsewhere = |machine| {
            format!(
                "{INSTRUCTIONS} Your sessions are on the machine {machine}: commands run and files are there, not where you are."
            )
        };
        let instructions = self.host.machine().map_or_else(|| INSTRUCTIONS.to_owned(), elsewhere);
        ServerConfig::new(capabilities).with_server_info(me).with_instructions(instructions)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.own.connected.store(true, Ordering::Relaxed);
        if let Some(client) = context.peer.peer_info() {
            let client = &client.client_info;
            self.host.meet(&Client { name: client.name.clone(), version: client.version.clone() });
        }
        // What the client asks for next is made while it has yet to ask.
        tokio::task::spawn_blocking(tools::served);
        if self.host.can_start_ahead() {
            let desk = Desk { host: self.host.quietly(), own: self.own.clone(), progress: None };
            let ahead = async move { desk.start_ahead().await };
            // Where there is none ahead, the first command starts one.
            tokio::spawn(self.follows.end.clone().run_until_cancelled_owned(ahead));
        }
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let has_flows = self.host.has_flows();
        let shown = tools::served().iter().filter(|tool| has_flows || !tools::is_about_flows(&tool.name));
        Ok(ListToolsResult::with_all_items(shown.cloned().collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let name = tools::today(name);
        tools::served().iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let host = match self.host(&context) {
            Ok(host) => host,
            Err(trouble) => return Ok(trouble.answer().into()),
        };
        let progress = context.meta.get_progress_token().map(|token| Progress::new(context.peer.clone(), token));
        let desk = Desk { host, own: self.own.clone(), progress };
        let arguments = request.arguments.unwrap_or_default();
        // Who no longer waits is cancelled; what runs keeps running.
        let answer = context.ct.run_until_cancelled(tools::call(&request.name, &desk, arguments)).await;
        match answer {
            Some(Some(result)) => Ok(result.into()),
            Some(None) => {
                let names: Vec<&str> = tools::served().iter().map(|tool| &*tool.name).collect();
                let message = format!("no tool {:?}; there are {}", request.name, names.join(", "));
                Err(ErrorData::invalid_params(message, None))
            }
            None => Ok(Trouble::new("cancelled", "cancelled; what runs keeps running").answer().into()),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let host = self.host(&context).map_err(|trouble| failed(&trouble))?;
        let resources = resources::list(&host).await.map_err(|trouble| failed(&trouble))?;
        if context.protocol_version().is_none_or(|version| version.has_initialize()) {
            self.follow_sessions(host, context.peer);
        }
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let host = self.host(&context).map_err(|trouble| failed(&trouble))?;
        let address = address(&request.uri).map_err(|trouble| failed(&trouble))?;
        let contents = resources::read(&host, &request.uri, &address).await.map_err(|trouble| failed(&trouble))?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let is_ours = request.r#ref.as_resource_uri().is_some_and(|uri| uri.starts_with("session://"));
        if !is_ours || request.argument.name != "session" {
            return Ok(CompleteResult::default());
        }
        let host = self.host(&context).map_err(|trouble| failed(&trouble))?;
        let mut names = resources::names(&host, &request.argument.value).await.map_err(|trouble| failed(&trouble))?;
        names.truncate(CompletionInfo::MAX_VALUES);
        let completion = CompletionInfo::with_all_values(names);
        Ok(CompleteResult::new(completion.map_err(|error| ErrorData::internal_error(error, None))?))
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let host = self.host(&context).map_err(|trouble| failed(&trouble))?;
        self.follow(host, request.uri, context.peer).await.map_err(|trouble| failed(&trouble))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut resources = self.follows.resources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stop) = resources.remove(&request.uri) {
            stop.cancel();
        }
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| Address::of(uri).is_some());
            uris.truncate(SUBSCRIPTIONS_MAX);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let host = self.host(context.request_context()).map_err(|trouble| failed(&trouble))?;
        let mut tasks = tokio::task::JoinSet::new();
        for uri in context.accepted().resource_subscriptions.clone().unwrap_or_default() {
            let (host, sink) = (host.clone(), context.sink().clone());
            let Some(address) = Address::of(&uri) else { continue };
            tasks.spawn(async move {
                let Ok(mut follow) = Follow::new(&host, &address).await else { return };
                loop {
                    let goes_on = follow.changed().await;
                    let sent = sink.notify_resource_updated(uri.clone()).await;
                    if sent.is_err() || !goes_on {
                        return;
                    }
                }
            });
        }
        if context.accepted().resources_list_changed == Some(true) {
            let sink = context.sink().clone();
            tasks.spawn(async move {
                let mut sessions = FollowSessions::new(&host);
                loop {
                    sessions.changed().await;
                    if sink.notify_resource_list_changed().await.is_err() {
                        return;
                    }
                }
            });
        }
        // What was spawned ends with the set.
        context.cancelled().await;
        Ok(())
    }
}
