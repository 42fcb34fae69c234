//! `holdfast bot`: sessions from a chat. Commands set it up and say how it is; the bot is a process of its own.

mod service;

pub use service::{serve, spawn, tend, wake};

use crate::args::{BotCommand, BotEnrolArgs, BotForgetArgs, BotInitArgs, BotRemoveArgs, BotServiceArgs};
use crate::failure::{Failure, STATUS_TIMEOUT, STATUS_USAGE};
use crate::here::Here;
use crate::show::{columns, now_ms, print, print_json, say, span, table};
use holdfast_bot::{BotError, CODE_MS, Can, Code, Condition, Config, Factor, Offer, Service, User};
use holdfast_types::{ActorClass, Handle};
use holdfast_wire::operations::op;
use holdfast_wire::params::Nothing;
use holdfast_wire::turns::ActorParams;
use serde_json::json;
use std::time::{Duration, Instant};

/// Between two looks whether a code was used.
const LOOK: Duration = Duration::from_millis(200);

/// `holdfast bot`.
pub fn bot(here: &Here, command: &BotCommand) -> Result<u8, Failure> {
    match command {
        BotCommand::Init(args) => init(here, args),
        BotCommand::Start(args) => start(here, args),
        BotCommand::Stop(args) => stop(here, args),
        BotCommand::Status => service::status(here),
        BotCommand::Users => users(here),
        BotCommand::Enrol(args) => enrol(here, args),
        BotCommand::Remove(args) => remove(here, args),
        BotCommand::Forget(args) => forget(here, args),
    }
}

fn failed(error: BotError) -> Failure {
    match &error {
        BotError::None(service) => {
            Failure::new("no_bot", error.to_string()).hint(format!("set one up: holdfast bot init {service}"))
        }
        BotError::Service(service, _) => Failure::from_error("token_refused", &error).hint(source(*service)),
        BotError::Token(service, _) => Failure::from_error("usage", &error).hint(source(*service)).status(STATUS_USAGE),
        BotError::Api(..) => Failure::from_error("usage", &error).status(STATUS_USAGE),
        BotError::Unreadable(_) | BotError::Io(..) => Failure::from_error("bot", &error),
    }
}

/// Where a token comes from.
fn source(service: Service) -> &'static str {
    match service {
        Service::Telegram => "get a token: in Telegram write /newbot to @BotFather; it looks like 123456789:AA…",
        Service::Discord => {
            "get a token: discord.com/developers/applications, New Application, Bot, Reset Token; no privileged intent is needed"
        }
    }
}

/// Who sets up bots and lets others in is a human, as the host sees it: an agent would let itself in.
fn human(here: &Here) -> Result<Handle, Failure> {
    let handle = here.who()?.actor().handle.clone();
    if handle.class() != ActorClass::Human {
        return Err(Failure::new("denied", format!("only a human may set up chat bots, and you are {handle}")));
    }
    // The host refuses a process that is an agent's, whatever it calls itself, and an actor it does not know.
    let me = here.link()?.call::<op::Me>(&Nothing {})?;
    if !me.known {
        return Err(Failure::new("denied", format!("this host does not know {handle}")));
    }
    Ok(handle)
}

fn init(here: &Here, args: &BotInitArgs) -> Result<u8, Failure> {
    let by = human(here)?;
    let service = args.service;
    let api = args.api.as_deref().unwrap_or_else(|| service.api());
    let api = holdfast_bot::check_api(api).map_err(failed)?;
    if !args.stdin && !here.json {
        say(source(service));
    }
    let secret = |what: &str| -> Result<String, Failure> {
        let line = if args.stdin { super::secret::from_stdin()? } else { super::secret::from_terminal(what)? };
        let text = std::str::from_utf8(&line).map_err(|e| Failure::io("cannot read it", e))?;
        Ok(text.trim().to_owned())
    };
    let token = secret(&format!("{service} bot"))?;
    let known = holdfast_bot::look_up(service, &token, &api).map_err(failed)?;
    let again = args.again_after.map(|after| after.ms);
    let made = if args.passphrase {
        let words = secret("the bot's passphrase")?;
        Some(Factor::passphrase(&words, again))
    } else {
        args.totp.then(|| Factor::totp(&known.name, again))
    };
    let made = made.transpose().map_err(|why| Failure::new("usage", why).status(STATUS_USAGE))?;
    let link = made.as_ref().and_then(|made| made.link.clone());
    let factor = made.map(|made| made.factor);
    // A bot with another number is another one: its users are not this one's.
    let before = Config::load(&here.home, service).ok().flatten();
    service::end(here, service)?;
    if before.is_some_and(|before| before.id != known.id) {
        dismiss(here, service)?;
    }
    let config = Config { service, token, api, id: known.id, name: known.name, enabled: true, factor };
    config.save(&here.home).map_err(failed)?;
    let offer = Offer { can: Can::Full, sessions: Vec::new(), for_ms: None, by, until_ms: now_ms() + CODE_MS };
    let code =
        holdfast_bot::make_code(&here.home, service, &offer).map_err(|e| Failure::io("cannot write the code", e))?;
    service::start(here, service)?;
    if here.json {
        print_json(&json!({
            "service": service, "bot": config.name, "id": config.id, "code": code.to_string(),
            "until_ms": offer.until_ms, "link": chat_link(&config, &code), "totp": link,
        }))?;
    } else {
        print(introduced(&config, &code, link.as_deref()))?;
    }
    if args.no_wait {
        return Ok(0);
    }
    paired(here, service)
}

fn chat_link(config: &Config, code: &Code) -> String {
    match config.service {
        Service::Telegram => format!("https://t.me/{}?start={code}", config.name),
        Service::Discord => {
            format!("https://discord.com/oauth2/authorize?client_id={}&scope=bot&permissions=0", config.id)
        }
    }
}

fn introduced(config: &Config, code: &Code, link: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(link) = link {
        text.push_str(&format!("add this to your authenticator app:\n  {link}\n\n"));
    }
    let minutes = CODE_MS / 60_000;
    match config.service {
        Service::Telegram => text.push_str(&format!(
            "open {}\nor send this to @{}:\n\n  {code}\n\n",
            chat_link(config, code),
            config.name
        )),
        Service::Discord => text.push_str(&format!(
            "let the bot into a server you are in: {}\nthen open {} there and send it this message:\n\n  {code}\n\n",
            chat_link(config, code),
            config.name
        )),
    }
    let service = config.service;
    text.push_str(&format!(
        "The code serves once, for {minutes} minutes. What goes through {service} is read by it: send no secrets there.\n"
    ));
    text
}

/// Waits until somebody has used the first code.
fn paired(here: &Here, service: Service) -> Result<u8, Failure> {
    let until = Instant::now() + Duration::from_millis(CODE_MS);
    while Instant::now() < until {
        if let Some(user) = holdfast_bot::users(&here.home, service).map_err(failed)?.values().next() {
            if !here.json {
                print(format!("paired with {} ({})\n", user.handle, crate::show::visible(&user.name)))?;
            }
            return Ok(0);
        }
        if let Some(status) = holdfast_bot::status(&here.home, service)
            && status.condition == Condition::Revoked
        {
            return Err(
                Failure::new("token_refused", format!("{service} does not accept the token")).hint(source(service))
            );
        }
        std::thread::sleep(LOOK);
    }
    let hint = format!("make another code: holdfast bot enrol {service} --can full");
    Err(Failure::new("timeout", "nobody sent the code in time").hint(hint).status(STATUS_TIMEOUT))
}

/// The bots that are meant.
fn meant(here: &Here, args: &BotServiceArgs) -> Result<Vec<Service>, Failure> {
    if let Some(service) = args.service {
        Config::get(&here.home, service).map_err(failed)?;
        return Ok(vec![service]);
    }
    let mut all = Vec::new();
    for service in Service::EACH {
        if Config::load(&here.home, service).map_err(failed)?.is_some() {
            all.push(service);
        }
    }
    if all.is_empty() {
        return Err(Failure::new("no_bot", "no bot is set up").hint("set one up: holdfast bot init telegram"));
    }
    Ok(all)
}

fn start(here: &Here, args: &BotServiceArgs) -> Result<u8, Failure> {
    human(here)?;
    let all = meant(here, args)?;
    for service in &all {
        let mut config = Config::get(&here.home, *service).map_err(failed)?;
        config.enabled = true;
        config.save(&here.home).map_err(failed)?;
        service::start(here, *service)?;
    }
    told(here, &all, "started")
}

fn stop(here: &Here, args: &BotServiceArgs) -> Result<u8, Failure> {
    let all = meant(here, args)?;
    for service in &all {
        service::end(here, *service)?;
    }
    told(here, &all, "stopped")
}

fn told(here: &Here, all: &[Service], what: &str) -> Result<u8, Failure> {
    if here.json {
        print_json(&json!({ what: all }))?;
    } else {
        print(all.iter().map(|service| format!("{service} bot {what}\n")).collect::<String>())?;
    }
    Ok(0)
}

fn users(here: &Here) -> Result<u8, Failure> {
    let now = now_ms();
    let (mut users, mut codes) = (Vec::new(), Vec::new());
    for service in Service::EACH {
        let all = holdfast_bot::users(&here.home, service).map_err(failed)?;
        users.extend(all.into_values().map(|user| (service, user)));
        codes.extend(holdfast_bot::offers(&here.home, service, now).into_iter().map(|offered| (service, offered)));
    }
    if here.json {
        let named = |(service, user): &(Service, User)| {
            json!({"service": service, "actor": user.handle, "name": user.name, "can": user.envelope.can,
                "sessions": user.envelope.sessions, "until_ms": user.envelope.until_ms, "enrolled_ms": user.enrolled_ms, "by": user.by})
        };
        let users: Vec<_> = users.iter().map(named).collect();
        let codes: Vec<_> =
            codes.iter().map(|(service, offered)| json!({"service": service, "code": offered})).collect();
        print_json(&json!({"users": users, "codes": codes}))?;
        return Ok(0);
    }
    if users.is_empty() && codes.is_empty() {
        print("nobody is enrolled\n")?;
        return Ok(0);
    }
    let mut rows = vec![["ACTOR", "NAME", "CAN", "SESSIONS", "UNTIL", "ENROLLED BY"].map(str::to_owned).to_vec()];
    let where_ = |sessions: usize| if sessions == 0 { "all".to_owned() } else { sessions.to_string() };
    for (_, user) in &users {
        let until = user.envelope.until_ms.map_or_else(|| "-".into(), |until| left(until, now));
        let (can, sessions) = (user.envelope.can.to_string(), where_(user.envelope.sessions.len()));
        let name = crate::show::visible(&user.name);
        rows.push(vec![user.handle.to_string(), name, can, sessions, until, user.by.to_string()]);
    }
    for (service, offered) in &codes {
        let until = left(offered.offer.until_ms, now);
        let (can, sessions) = (offered.offer.can.to_string(), where_(offered.offer.sessions.len()));
        let name = format!("({service} code, unused)");
        rows.push(vec!["-".into(), name, can, sessions, until, offered.offer.by.to_string()]);
    }
    print(table(&rows, columns()).into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(0)
}

fn left(until: u64, now: u64) -> String {
    if until <= now { "over".into() } else { format!("in {}", span(until - now)) }
}

fn enrol(here: &Here, args: &BotEnrolArgs) -> Result<u8, Failure> {
    let by = human(here)?;
    let service = match (args.service, meant(here, &BotServiceArgs { service: args.service })?.as_slice()) {
        (Some(service), _) => service,
        (None, [one]) => *one,
        (None, _) => {
            return Err(Failure::new("usage", "which bot?")
                .hint("holdfast bot enrol telegram|discord …")
                .status(STATUS_USAGE));
        }
    };
    let config = Config::get(&here.home, service).map_err(failed)?;
    let mut sessions = Vec::new();
    for name in &args.sessions {
        sessions.push(here.link()?.get(name)?.id);
    }
    let until_ms = now_ms() + CODE_MS;
    let offer = Offer { can: args.can, sessions, for_ms: args.span.map(|span| span.ms), by, until_ms };
    let code =
        holdfast_bot::make_code(&here.home, service, &offer).map_err(|e| Failure::io("cannot write the code", e))?;
    if here.json {
        print_json(
            &json!({"service": service, "code": code.to_string(), "until_ms": until_ms, "link": chat_link(&config, &code)}),
        )?;
        return Ok(0);
    }
    print(introduced(&config, &code, None))?;
    if holdfast_bot::is_served(&here.home, service).is_none() {
        say(&format!("the bot is not running; start it: holdfast bot start {service}"));
    }
    Ok(0)
}

fn remove(here: &Here, args: &BotRemoveArgs) -> Result<u8, Failure> {
    let mut known = Vec::new();
    for service in Service::EACH {
        known.extend(holdfast_bot::users(&here.home, service).map_err(failed)?.into_values().map(|user| user.handle));
    }
    if !known.contains(&args.handle) {
        let failure = Failure::new("no_such_actor", format!("{} is no chat user", args.handle));
        return Err(failure.hint("see `holdfast bot users`"));
    }
    here.link()?.call::<op::ActorRemove>(&ActorParams { handle: args.handle.clone() })?;
    if here.json {
        print_json(&json!({"removed": args.handle}))?;
    } else {
        print(format!("removed {}\n", args.handle))?;
    }
    Ok(0)
}

/// Removes the actors of all users of a bot, and its files.
fn dismiss(here: &Here, service: Service) -> Result<(), Failure> {
    for user in holdfast_bot::users(&here.home, service).map_err(failed)?.into_values() {
        // One that is gone already is gone.
        let _ = here.link()?.call::<op::ActorRemove>(&ActorParams { handle: user.handle });
    }
    Config::forget(&here.home, service).map_err(failed)
}

fn forget(here: &Here, args: &BotForgetArgs) -> Result<u8, Failure> {
    human(here)?;
    let service = args.service;
    Config::get(&here.home, service).map_err(failed)?;
    service::end(here, service)?;
    dismiss(here, service)?;
    told(here, &[service], "forgotten")
}
